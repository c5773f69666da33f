package bifocal.tvm.crossing;

/** Reaches where its module must not. */
public final class Crosses {

  private Crosses() {}

  /** Names the forbidden class. */
  public static Class<?> reached() {
    return bifocal.routing.crossing.Crosses.class;
  }
}

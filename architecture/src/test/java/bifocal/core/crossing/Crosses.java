package bifocal.core.crossing;

/** Reaches where its module must not. */
public final class Crosses {

  private Crosses() {}

  /** Names the forbidden class. */
  public static Class<?> reached() {
    return com.google.inject.Injector.class;
  }
}

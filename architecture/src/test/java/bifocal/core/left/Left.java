package bifocal.core.left;

import bifocal.core.right.Right;

/** One half of a cycle between packages. */
public final class Left {

  private Left() {}

  /** Reaches the other half. */
  public static Class<?> reached() {
    return Right.class;
  }
}

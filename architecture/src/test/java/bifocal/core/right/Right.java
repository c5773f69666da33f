package bifocal.core.right;

import bifocal.core.left.Left;

/** One half of a cycle between packages. */
public final class Right {

  private Right() {}

  /** Reaches the other half. */
  public static Class<?> reached() {
    return Left.class;
  }
}

package bifocal.tvm;

import bifocal.core.error.BifocalException;
import java.nio.file.Path;

/**
 * A program that loads a runtime and tells how that went: a process loads one, and tests do, too.
 */
final class LoadAndTell {
  private LoadAndTell() {}

  public static void main(String[] arguments) {
    try {
      System.out.println("version " + TvmRuntime.load(Path.of(arguments[0])).version());
    } catch (BifocalException refused) {
      System.out.println(refused.code() + " " + refused.getMessage());
    }
  }
}

package bifocal.tvm.ffi;

import bifocal.tvm.ffi.LibraryLoader.Protection;
import bifocal.tvm.ffi.LibraryLoader.Visibility;
import java.lang.foreign.Arena;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A program that loads a library and follows null references in compiled code, after loading and,
 * on request, on another thread while it loads. The JVM finds such references by catching SIGSEGV.
 */
final class LoadAndTrap {
  private static final int ENOUGH_TO_COMPILE = 20_000;
  private static final int TRAPS = 1_000;

  private LoadAndTrap() {}

  /** An object with something to read. */
  private record Point(long x) {}

  public static void main(String[] arguments) throws InterruptedException {
    Path library = Path.of(arguments[0]);
    warmUp();
    if (arguments[2].equals("while-loading")) {
      loadWhileTrapping(library, arguments[1]);
    } else {
      load(library, arguments[1]);
    }
    System.out.println("survived " + traps(TRAPS) + " null references after loading");
  }

  private static void load(Path library, String how) {
    switch (how) {
      case "unprotected" -> {
        try (Arena arena = Arena.ofConfined()) {
          SystemLibrary.open(
              arena.allocateFrom(library.toString()),
              SystemLibrary.RTLD_NOW | SystemLibrary.RTLD_LOCAL);
        }
      }
      case "put-back" -> LibraryLoader.open(library, Visibility.OWN, Protection.PUT_BACK);
      case "shield" -> LibraryLoader.open(library, Visibility.OWN);
      default -> throw new IllegalArgumentException(how);
    }
  }

  private static void loadWhileTrapping(Path library, String how) throws InterruptedException {
    AtomicBoolean loaded = new AtomicBoolean();
    AtomicLong met = new AtomicLong();
    Thread trapping =
        Thread.ofPlatform()
            .start(
                () -> {
                  while (!loaded.get()) {
                    met.addAndGet(traps(1));
                  }
                });
    while (met.get() < TRAPS) {
      Thread.onSpinWait();
    }
    long before = met.get();
    load(library, how);
    long meanwhile = met.get() - before;
    loaded.set(true);
    trapping.join();
    System.out.println("met " + meanwhile + " null references while loading");
  }

  private static void warmUp() {
    Point point = new Point(1);
    long sum = 0;
    for (int i = 0; i < ENOUGH_TO_COMPILE; i++) {
      sum += read(point);
    }
    if (sum != ENOUGH_TO_COMPILE) {
      throw new AssertionError(sum);
    }
  }

  private static int traps(int count) {
    int traps = 0;
    for (int i = 0; i < count; i++) {
      try {
        read(null);
      } catch (NullPointerException e) {
        traps++;
      }
    }
    return traps;
  }

  @SuppressWarnings("NullAway")
  private static long read(Point point) {
    return point.x;
  }
}

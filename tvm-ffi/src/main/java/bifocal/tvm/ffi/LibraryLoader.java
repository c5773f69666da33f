package bifocal.tvm.ffi;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Opens libraries without letting them take the signals of the JVM. A library stays loaded as long
 * as the JVM.
 *
 * <p>Each is opened on a thread of its own, which cannot change signal handlers. Where the kernel
 * takes no such shield, handlers are put back as soon as the library is open.
 */
public final class LibraryLoader {
  private static final Logger LOG = LoggerFactory.getLogger(LibraryLoader.class);

  private LibraryLoader() {}

  /** Who may use the symbols of a library, and when those it lacks are missed. */
  public enum Visibility {
    /** All libraries opened later; every symbol it needs must be there at once. */
    SHARED(SystemLibrary.RTLD_NOW | SystemLibrary.RTLD_GLOBAL),
    /** Nobody who does not ask for it; every symbol it needs must be there at once. */
    OWN(SystemLibrary.RTLD_NOW | SystemLibrary.RTLD_LOCAL),
    /**
     * Nobody who does not ask for it; a function it lacks is missed when it is called. Modules are
     * compiled in parts, and parts that no plan ever picks are left out.
     */
    OWN_LAZY(SystemLibrary.RTLD_LAZY | SystemLibrary.RTLD_LOCAL);

    private final int flags;

    Visibility(int flags) {
      this.flags = flags;
    }
  }

  /** How the signals of the JVM are kept. */
  enum Protection {
    /** The loading thread cannot change handlers; what changes all the same is put back. */
    SHIELD,
    /** Handlers are put back after loading. */
    PUT_BACK
  }

  /** An open library. */
  public record Library(long handle, Path file) {
    /** Address of a symbol of the library or of what it depends on. */
    public Option<Long> symbol(String name) {
      return present(SystemLibrary.symbol(handle, name));
    }
  }

  /** Address of a symbol that some library shares with the whole process. */
  public static Option<Long> shared(String symbol) {
    return present(SystemLibrary.symbol(SystemLibrary.RTLD_DEFAULT, symbol));
  }

  /** Whether a library file is open in this process already. */
  static boolean opened(Path file) {
    try (Arena arena = Arena.ofConfined()) {
      return SystemLibrary.open(
              arena.allocateFrom(file.toAbsolutePath().toString()),
              SystemLibrary.RTLD_LAZY | SystemLibrary.RTLD_NOLOAD)
          != 0;
    }
  }

  /**
   * Opens a library file, or opens it further.
   *
   * @throws BifocalException {@code NATIVE_MISSING} if the file is not there or the system's loader
   *     refuses it, with the loader's text; {@code UNSUPPORTED} where this is not Linux
   */
  public static Library open(Path file, Visibility visibility) {
    return open(file, visibility, Protection.SHIELD);
  }

  static Library open(Path file, Visibility visibility, Protection protection) {
    String system = System.getProperty("os.name");
    if (!system.equals("Linux")) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED, "system that TVM-FFI libraries are loaded on", system, "Linux");
    }
    requireFile(file);
    FutureTask<Library> opening = new FutureTask<>(() -> openHere(file, visibility, protection));
    Thread.ofPlatform().name("open " + file.getFileName()).daemon().start(opening);
    return result(opening);
  }

  static void requireFile(Path file) {
    if (!Files.isRegularFile(file)) {
      throw BifocalException.of(
          ErrorCode.NATIVE_MISSING, "library not found", file, "a file of that name");
    }
  }

  private static Library openHere(Path file, Visibility visibility, Protection protection) {
    boolean shielded = protection == Protection.SHIELD && SignalShield.raise();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment path = arena.allocateFrom(file.toAbsolutePath().toString());
      SignalHandlers before = SignalHandlers.now(arena);
      long handle = SystemLibrary.open(path, visibility.flags);
      Seq<Integer> putBack = shielded ? Vector.empty() : before.restore();
      if (!putBack.isEmpty()) {
        LOG.warn("{} took signals {}; their handlers are put back", file, putBack.mkString(", "));
      }
      if (handle == 0) {
        throw BifocalException.of(
            ErrorCode.NATIVE_MISSING,
            "library " + file + " found but cannot be loaded",
            SystemLibrary.loaderText().getOrElse("no reason given"),
            "a library for this system");
      }
      return new Library(handle, file);
    }
  }

  /** Waits out interrupts, which stay pending: a library that is half open belongs to nobody. */
  private static Library result(FutureTask<Library> opening) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return opening.get();
        } catch (InterruptedException e) {
          interrupted = true;
        } catch (ExecutionException e) {
          throw NativeCalls.unexpected("dlopen", Option.of(e.getCause()).getOrElse(e));
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static Option<Long> present(long address) {
    return address == 0 ? Option.none() : Option.some(address);
  }
}

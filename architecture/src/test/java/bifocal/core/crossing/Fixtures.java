package bifocal.core.crossing;

import java.lang.foreign.Arena;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.util.logging.Logger;

/** One class for each rule, which breaks it. Nothing here ever runs. */
public final class Fixtures {

  private Fixtures() {}

  /** Knows the linker. */
  public static final class Links {
    Linker linker() {
      return Linker.nativeLinker();
    }
  }

  /** Stretches a segment. */
  public static final class Reinterprets {
    MemorySegment stretched(MemorySegment segment) {
      return segment.reinterpret(1L);
    }
  }

  /** Loads a library. */
  public static final class Loads {
    void load() {
      System.loadLibrary("none");
    }
  }

  /** Opens an arena that nobody closes. */
  public static final class KeepsAnArena {
    Arena arena() {
      return Arena.ofAuto();
    }
  }

  /** Prints. */
  public static final class Prints {
    void print() {
      System.out.println();
    }
  }

  /** Logs through another door. */
  public static final class Logs {
    Logger logger() {
      return Logger.getGlobal();
    }
  }

  /** Ends the JVM of its host. */
  public static final class Ends {
    void end() {
      System.exit(0);
    }
  }

  /** Has a name that fits everything. */
  public static final class ThingManager {}

  /** Stands for the SPI. */
  public interface AttentionImpl {}

  /** Remembers a step. */
  public static final class KeepsAStep implements AttentionImpl {
    int step;
  }
}

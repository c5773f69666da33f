package bifocal.benchmarks.cpu.ffi;

import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** {@code libbifocal_cpu_peaks}: what the machine can do at most. The caller takes the time. */
@SuppressWarnings("restricted")
public final class Peaks {
  private static final String LIBRARY = "libbifocal_cpu_peaks.so";
  private static final Linker LINKER = Linker.nativeLinker();

  private final MethodHandle flops;
  private final MethodHandle read;

  /** An instruction whose rate is a peak. The order is the library's. */
  public enum Instruction {
    /** Multiply-add of floats in the widest vectors there are. */
    FMA("fma", 1_000_000),
    /** Dot products of pairs of bfloat16. */
    DOT("vdpbf16ps", 400_000),
    /** Products of bfloat16 tiles. */
    TILES("tdpbf16ps", 150_000);

    private final String label;
    private final long rounds;

    Instruction(String label, long rounds) {
      this.label = label;
      this.rounds = rounds;
    }

    /** Its name in reports. */
    public String label() {
      return label;
    }
  }

  private Peaks(SymbolLookup library) {
    this.flops =
        function(
            library,
            "bifocal_cpu_peak_flops",
            FunctionDescriptor.of(JAVA_DOUBLE, JAVA_INT, JAVA_LONG));
    this.read =
        function(library, "bifocal_cpu_peak_read", FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_LONG));
  }

  /**
   * The packaged library.
   *
   * @throws BifocalException {@code NATIVE_MISSING} where the build had no C compiler
   */
  public static Peaks load() {
    String name =
        "native/" + System.getProperty("os.name") + "-" + System.getProperty("os.arch") + "/";
    try (InputStream packaged = Peaks.class.getResourceAsStream(name + LIBRARY)) {
      if (packaged == null) {
        throw BifocalException.of(
                ErrorCode.NATIVE_MISSING, LIBRARY, "not packaged", "the library of this version")
            .withRemedy("build with make and a C compiler installed");
      }
      Path copy = Files.createTempFile("libbifocal_cpu_peaks", ".so");
      try {
        Files.copy(packaged, copy, StandardCopyOption.REPLACE_EXISTING);
        return new Peaks(SymbolLookup.libraryLookup(copy, Arena.global()));
      } finally {
        Files.deleteIfExists(copy);
      }
    } catch (IOException | IllegalArgumentException e) {
      throw BifocalException.of(
              ErrorCode.NATIVE_MISSING, LIBRARY, String.valueOf(e.getMessage()), "to be loaded")
          .causedBy(e);
    }
  }

  /**
   * {@code double bifocal_cpu_peak_flops(int32_t kind, int64_t n)}: runs some milliseconds of one
   * instruction.
   *
   * @return its FLOPs, 0 where the CPU has no such instruction
   */
  public double flops(Instruction instruction) {
    try {
      return (double) flops.invokeExact(instruction.ordinal(), instruction.rounds);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /** {@code void bifocal_cpu_peak_read(const void *, int64_t)}: reads memory from end to end. */
  public void read(MemorySegment memory) {
    try {
      read.invokeExact(memory.address(), memory.byteSize() / 256 * 256);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  private static MethodHandle function(SymbolLookup library, String name, FunctionDescriptor type) {
    return LINKER.downcallHandle(library.findOrThrow(name), type);
  }
}

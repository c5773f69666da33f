package bifocal.cuda.flashinfer;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaKernel;
import bifocal.cuda.driver.CudaLibrary;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.LaunchShape;
import bifocal.cuda.driver.PreparedLaunch;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.Arena;

/**
 * This project's kernel that turns the base-2 log-sum-exps of some rows into natural ones, in
 * place. It comes as PTX, which the driver compiles for its device.
 *
 * @param kernel on the device
 */
record NaturalLog(CudaKernel kernel) {
  /** The kernel, and what messages call its code. */
  static final String NAME = "bifocal_natural_log";

  private static final String FILE = "natural_log.ptx";
  private static final int THREADS = 256;

  /** Where the code comes from. */
  @FunctionalInterface
  interface Source {
    /** What the driver loads. */
    byte[] code();

    /** The code of this build. */
    Source OWN = NaturalLog::read;
  }

  static NaturalLog of(CudaLibrary library) {
    return new NaturalLog(library.kernel(NAME));
  }

  private static byte[] read() {
    try (InputStream in = NaturalLog.class.getResourceAsStream(FILE)) {
      if (in == null) {
        throw BifocalException.of(ErrorCode.INTERNAL, "this build lacks " + FILE);
      }
      return in.readAllBytes();
    } catch (IOException e) {
      throw BifocalException.of(ErrorCode.INTERNAL, "reading " + FILE).causedBy(e);
    }
  }

  /** A launch whose values are set later. */
  Converter converter(int heads, Arena arena) {
    PreparedLaunch launch = kernel.prepare(arena, LaunchShape.of(THREADS, 0));
    launch.setInt(Converter.HEADS, heads);
    return new Converter(launch, heads);
  }

  /**
   * Launches for one layer.
   *
   * @param heads query heads
   */
  record Converter(PreparedLaunch launch, int heads) {
    private static final int SUMS = 0;
    private static final int RANGES = 1;
    private static final int HEADS = 2;

    void run(CudaStream stream, TensorView lse, FlashInferStep.SumRows rows) {
      launch.setLong(SUMS, lse.address());
      launch.setLong(RANGES, rows.address());
      launch.launch(
          stream,
          Math.toIntExact(Math.ceilDiv((long) rows.longest() * heads, THREADS)),
          rows.count(),
          1);
    }
  }
}

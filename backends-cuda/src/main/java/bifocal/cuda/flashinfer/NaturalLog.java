package bifocal.cuda.flashinfer;

import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaKernel;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.LaunchShape;
import bifocal.cuda.driver.PreparedLaunch;
import java.lang.foreign.Arena;

/**
 * The kernel that turns the base-2 log-sum-exps of some rows into natural ones, in place.
 *
 * @param kernel on the device
 */
record NaturalLog(CudaKernel kernel) {
  /** The kernel. */
  static final String NAME = "bifocal_natural_log";

  private static final int THREADS = 256;

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

package bifocal.cuda.flashinfer;

import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaKernel;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.driver.LaunchShape;
import bifocal.cuda.driver.PreparedLaunch;
import java.lang.foreign.Arena;

/**
 * The kernel that copies the rows of live requests from where a recorded launch computes as many
 * rows as the batch is padded to. Which rows are live is read on the device.
 *
 * @param kernel on the device
 */
record LiveRows(CudaKernel kernel) {
  /** The kernel. */
  static final String NAME = "bifocal_live_rows";

  private static final int THREADS = 256;
  private static final int VECTOR_BYTES = 16;

  /**
   * A launch whose values are set later.
   *
   * @param rowBytes bytes of a row, a multiple of 16
   */
  Copier copier(long rowBytes, Arena arena) {
    PreparedLaunch launch = kernel.prepare(arena, LaunchShape.of(THREADS, 0));
    int vectors = Math.toIntExact(rowBytes / VECTOR_BYTES);
    launch.setInt(Copier.VECTORS, vectors);
    return new Copier(launch, vectors);
  }

  /**
   * Launches for one layer.
   *
   * @param vectors of 16 bytes in a row
   */
  record Copier(PreparedLaunch launch, int vectors) {
    private static final int FROM = 0;
    private static final int TO = 1;
    private static final int RANGE = 2;
    private static final int VECTORS = 3;

    /**
     * Copies.
     *
     * @param from rows of a range, from the start on
     * @param to where they go, each to its place
     * @param range address of the range on the device
     * @param most rows that the range may have
     */
    void run(CudaStream stream, TensorView from, TensorView to, long range, int most) {
      launch.setLong(FROM, from.address());
      launch.setLong(TO, to.address());
      launch.setLong(RANGE, range);
      launch.launch(stream, Math.ceilDiv(vectors, THREADS), most, 1);
    }
  }
}

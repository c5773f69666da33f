package bifocal.cuda.flashinfer;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.memory.DeviceBlock;
import java.util.ArrayList;
import java.util.List;

/** Takes all memory of a device, but for less than a page. */
final class FullDevice implements AutoCloseable {
  private final CudaMemory memory;
  private final List<DeviceBlock> blocks = new ArrayList<>();

  /**
   * Takes it.
   *
   * @param least bytes of the smallest block that is tried
   */
  FullDevice(CudaContext context, long least) {
    this.memory = CudaMemory.unlimited(context);
    for (long bytes = 1L << 37; bytes >= least; bytes /= 2) {
      while (takes(bytes)) {}
    }
  }

  private boolean takes(long bytes) {
    try {
      blocks.add(memory.acquire("all there is " + blocks.size(), bytes));
      return true;
    } catch (BifocalException full) {
      if (full.code() != ErrorCode.DEVICE_MEMORY_EXHAUSTED
          && full.code() != ErrorCode.MEMORY_TOO_SMALL) {
        throw full;
      }
      return false;
    }
  }

  /** Bytes that were taken. */
  long taken() {
    return memory.used();
  }

  @Override
  public void close() {
    blocks.forEach(DeviceBlock::close);
    memory.close();
  }
}

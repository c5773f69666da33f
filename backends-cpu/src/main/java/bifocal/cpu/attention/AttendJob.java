package bifocal.cpu.attention;

import bifocal.cpu.kernel.AttendParams;
import bifocal.cpu.kernel.CpuKernels;
import bifocal.cpu.kernel.WorkItem;
import bifocal.cpu.thread.CpuJob;
import org.jspecify.annotations.Nullable;

/** Runs the work items of one step, one item a piece. */
final class AttendJob extends CpuJob {
  private final CpuKernels kernels;
  private final long items;
  private final long scratch;
  private final long scratchStride;
  private @Nullable AttendParams params;

  AttendJob(CpuKernels kernels, long items, long scratch, long scratchStride) {
    this.kernels = kernels;
    this.items = items;
    this.scratch = scratch;
    this.scratchStride = scratchStride;
  }

  /** Sets the layer whose attention is next. */
  AttendJob of(AttendParams layer) {
    params = layer;
    return this;
  }

  @Override
  protected void run(int worker, long piece) {
    AttendParams layer = params;
    if (layer != null) {
      kernels.attend(layer, items + piece * WorkItem.BYTES, 1, scratch + worker * scratchStride);
    }
  }
}

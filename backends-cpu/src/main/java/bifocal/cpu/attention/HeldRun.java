package bifocal.cpu.attention;

import bifocal.cpu.kernel.AttendParams;
import bifocal.cpu.thread.CpuJob;
import org.jspecify.annotations.Nullable;

/** What one call of a layer runs while its memory is held: at most a write, then a step's items. */
final class HeldRun implements Runnable {
  private final CpuRuntime runtime;
  private @Nullable CpuJob write;
  private long tokens;
  private int writers;
  private @Nullable AttendParams params;
  private @Nullable StepPlan plan;

  HeldRun(CpuRuntime runtime) {
    this.runtime = runtime;
  }

  /** Next is a write alone. */
  void write(CpuJob job, long count, int workers) {
    packBefore(job, count, workers);
    params = null;
    plan = null;
  }

  /** Next are the items of a step. */
  void attend(AttendParams layer, StepPlan step) {
    params = layer;
    plan = step;
    write = null;
  }

  /** The step's keys are written before. */
  void packBefore(CpuJob job, long count, int workers) {
    write = job;
    tokens = count;
    writers = workers;
  }

  @Override
  public void run() {
    if (write != null) {
      runtime.threads().run(write, Math.ceilDiv(tokens, WriteJob.TOKENS), writers);
    }
    if (plan != null && params != null) {
      runtime.threads().run(plan.job().of(params), plan.items(), plan.workers());
      if (plan.mergeCount() > 0) {
        runtime.kernels().merge(params, plan.merges(), plan.mergeCount());
      }
    }
  }
}

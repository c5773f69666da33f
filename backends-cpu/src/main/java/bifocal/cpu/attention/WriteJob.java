package bifocal.cpu.attention;

import bifocal.cpu.kernel.CpuKernels;
import bifocal.cpu.kernel.KvWriteParams;
import bifocal.cpu.thread.CpuJob;

/** Writes one step's keys and values into the cache, some tokens a piece. */
final class WriteJob extends CpuJob {
  static final int TOKENS = 32;

  private final CpuKernels kernels;
  private final KvWriteParams params;
  private long tokens;

  WriteJob(CpuKernels kernels, KvWriteParams params) {
    this.kernels = kernels;
    this.params = params;
  }

  /** Sets how many tokens the next run writes. */
  WriteJob of(long count) {
    tokens = count;
    return this;
  }

  @Override
  protected void run(int worker, long piece) {
    long first = piece * TOKENS;
    kernels.writeKv(params, first, Math.min(TOKENS, tokens - first));
  }
}

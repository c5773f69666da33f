package bifocal.cpu.contract;

import bifocal.conformance.AttentionBackendContract;
import bifocal.core.backend.AttentionBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.cpu.thread.CpuThreads;

/** Skipped, with the reason, where the C kernels are not built. */
final class FlexAttentionNativeTest extends AttentionBackendContract {
  @Override
  public AttentionBackend<?> backend() {
    return new FlexAttentionBackend(new CpuRuntime(BuiltKernels.orSkip(), CpuThreads.shared()));
  }
}

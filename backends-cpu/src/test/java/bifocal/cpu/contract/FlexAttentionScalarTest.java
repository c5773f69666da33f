package bifocal.cpu.contract;

import bifocal.conformance.AttentionBackendContract;
import bifocal.core.backend.AttentionBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.cpu.attention.KernelChoice;
import bifocal.cpu.thread.CpuThreads;

final class FlexAttentionScalarTest extends AttentionBackendContract {
  @Override
  public AttentionBackend<?> backend() {
    return new FlexAttentionBackend(new CpuRuntime(KernelChoice.scalar(), CpuThreads.shared()));
  }
}

package bifocal.cpu.contract;

import bifocal.conformance.AttentionBackendContract;
import bifocal.core.backend.AttentionBackend;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.KernelChoice;
import bifocal.cpu.thread.CpuThreads;

final class CpuAttnScalarTest extends AttentionBackendContract {
  @Override
  public AttentionBackend<?> backend() {
    return new CpuAttnBackend(new CpuRuntime(KernelChoice.scalar(), CpuThreads.shared()));
  }
}

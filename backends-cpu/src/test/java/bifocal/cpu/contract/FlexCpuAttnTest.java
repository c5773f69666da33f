package bifocal.cpu.contract;

import bifocal.composite.CompositeBackends;
import bifocal.conformance.AttentionBackendContract;
import bifocal.core.backend.AttentionBackend;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.routing.MMPrefixAttentionRouting;

/** The composite, with the kernels that this JVM chooses. */
final class FlexCpuAttnTest extends AttentionBackendContract {
  @Override
  public AttentionBackend<?> backend() {
    CpuRuntime runtime = CpuRuntime.ofThisJvm();
    return CompositeBackends.createCompositeBackendOrThrow(
        new FlexAttentionBackend(runtime),
        new CpuAttnBackend(runtime),
        new MMPrefixAttentionRouting());
  }
}

package bifocal.cpu.contract;

import bifocal.composite.CompositeBackends;
import bifocal.conformance.AttentionBackendContract;
import bifocal.core.backend.AttentionBackend;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;

/** The composite with images cut into runs for the fast child, right windows included. */
final class LoweredFlexCpuAttnTest extends AttentionBackendContract {
  @Override
  public AttentionBackend<?> backend() {
    CpuRuntime runtime = CpuRuntime.ofThisJvm();
    return CompositeBackends.createCompositeBackendOrThrow(
        new FlexAttentionBackend(runtime),
        new CpuAttnBackend(runtime),
        new MMPrefixAttentionRouting().withLowering(Lowering.BOTH_WINDOWS));
  }
}

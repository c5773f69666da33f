package bifocal.composite;

import bifocal.conformance.AttentionBackendContract;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.cache.KvLayouts;
import bifocal.reference.ReferenceBackend;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import bifocal.routing.PrefillDecodeRouting;

/** A composite that lowers images, inside one that divides by phase, keeps the whole contract. */
class NestedContractTest extends AttentionBackendContract {
  @Override
  public AttentionBackend<?> backend() {
    return CompositeBackends.createCompositeBackendOrThrow(
        CompositeBackends.createCompositeBackendOrThrow(
            ReferenceBackend.over(KvLayouts.NHD),
            ReferenceBackend.over(KvLayouts.NHD),
            new MMPrefixAttentionRouting().withLowering(Lowering.BOTH_WINDOWS)),
        ReferenceBackend.over(KvLayouts.NHD),
        new PrefillDecodeRouting());
  }
}

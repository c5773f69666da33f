package bifocal.composite;

import bifocal.conformance.AttentionBackendContract;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.cache.KvLayouts;
import bifocal.reference.ReferenceBackend;
import bifocal.routing.MMPrefixAttentionRouting;

/** A composite that divides batches by their images keeps the whole contract of a backend. */
class ImageRoutingContractTest extends AttentionBackendContract {
  @Override
  public AttentionBackend<?> backend() {
    return CompositeBackends.createCompositeBackendOrThrow(
        ReferenceBackend.over(KvLayouts.NHD),
        ReferenceBackend.over(KvLayouts.NHD),
        new MMPrefixAttentionRouting());
  }
}

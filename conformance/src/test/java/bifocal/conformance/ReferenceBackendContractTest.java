package bifocal.conformance;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.cache.KvLayouts;
import bifocal.reference.ReferenceBackend;

/** The reference keeps the contract it judges others by. */
class ReferenceBackendContractTest extends AttentionBackendContract {
  @Override
  public AttentionBackend<?> backend() {
    return ReferenceBackend.over(KvLayouts.NHD, KvLayouts.HND);
  }
}

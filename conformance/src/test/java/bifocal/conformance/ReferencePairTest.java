package bifocal.conformance;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.cache.KvLayouts;
import bifocal.reference.ReferenceBackend;

/** Two references that prefer different layouts agree on one and share it. */
class ReferencePairTest extends KvCachePairContract {
  @Override
  public AttentionBackend<?> backend() {
    return ReferenceBackend.over(KvLayouts.NHD, KvLayouts.HND);
  }

  @Override
  public AttentionBackend<?> other() {
    return ReferenceBackend.over(KvLayouts.HND);
  }
}

package bifocal.conformance.fake;

import bifocal.core.backend.BackendName;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;

/** One call a fake backend received. */
public sealed interface Call {
  /** Which backend. */
  BackendName backend();

  /** A builder was made. */
  record BuilderCreated(BackendName backend, LayerGroup group, KvCacheSpec cache) implements Call {}

  /** An implementation was made. */
  record ImplCreated(BackendName backend, AttentionLayerSpec layer, KvCacheSpec cache)
      implements Call {}

  /** A batch was built. */
  record Built(BackendName backend, LayerGroup group, CommonAttentionMetadata batch, long step)
      implements Call {}

  /** Keys and values were written. */
  record Wrote(BackendName backend, long tokens) implements Call {}

  /** A forward was launched. */
  record Forwarded(BackendName backend, FakeMetadata metadata) implements Call {}

  /** A builder was closed. */
  record BuilderClosed(BackendName backend) implements Call {}

  /** An implementation was closed. */
  record ImplClosed(BackendName backend) implements Call {}
}

package bifocal.cli.replay;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.BackendName;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Route;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;

/** Sums what each kernel backend took until somebody asks. */
final class Times implements AttentionObserver {
  private Map<BackendName, Long> nanos = LinkedHashMap.empty();

  @Override
  public boolean enabled() {
    return true;
  }

  @Override
  public void routed(
      LayerGroup group, CommonAttentionMetadata batch, Route route, long nanoseconds) {}

  @Override
  public void forwarded(
      BackendName backend, LayerGroup group, int requests, int queryTokens, long nanoseconds) {
    nanos = nanos.put(backend, nanos.getOrElse(backend, 0L) + nanoseconds);
  }

  /** The sums since the last call. */
  Map<BackendName, Long> take() {
    Map<BackendName, Long> taken = nanos;
    nanos = LinkedHashMap.empty();
    return taken;
  }
}

package bifocal.core.backend;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Route;
import io.vavr.collection.Seq;

/** Sees what happens to batches. Nothing is timed or made for an observer that is not enabled. */
public interface AttentionObserver {
  /** Sees nothing. */
  AttentionObserver NONE =
      new AttentionObserver() {
        @Override
        public boolean enabled() {
          return false;
        }

        @Override
        public void routed(
            LayerGroup group, CommonAttentionMetadata batch, Route route, long nanoseconds) {}

        @Override
        public void forwarded(
            BackendName backend,
            LayerGroup group,
            int requests,
            int queryTokens,
            long nanoseconds) {}
      };

  /** Whether the other methods want to be called. */
  boolean enabled();

  /**
   * A backend was selected for a layer.
   *
   * @param source what decided, for instance {@code explicit} or {@code priority}
   * @param considered every candidate, each with what speaks against it
   */
  default void selected(
      AttentionRequest request, BackendName backend, String source, Seq<String> considered) {}

  /** A policy chose a route, in so many nanoseconds. */
  void routed(LayerGroup group, CommonAttentionMetadata batch, Route route, long nanoseconds);

  /**
   * A backend ran one layer's forward, or launched it where the device runs by itself. Whoever
   * calls forward reports it: a composite reports its children, a host the backend it selected.
   */
  void forwarded(
      BackendName backend, LayerGroup group, int requests, int queryTokens, long nanoseconds);

  /**
   * The same, with what ran.
   *
   * @param kernels true names of the kernels, empty when the backend does not say
   */
  default void forwarded(
      BackendName backend,
      LayerGroup group,
      int requests,
      int queryTokens,
      String kernels,
      long nanoseconds) {
    forwarded(backend, group, requests, queryTokens, nanoseconds);
  }
}

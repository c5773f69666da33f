package bifocal.core.observe;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import io.vavr.collection.Seq;
import jdk.jfr.EventType;

/**
 * Turns what happens to batches into Flight Recorder events: {@code bifocal.Selection}, {@code
 * bifocal.Route} and {@code bifocal.Forward}. While no recording wants one of them it is not
 * enabled, and nothing is timed or made. Safe for any thread.
 */
public final class JfrObserver implements AttentionObserver {
  private static final EventType SELECTION = EventType.getEventType(SelectionEvent.class);
  private static final EventType ROUTE = EventType.getEventType(RouteEvent.class);
  private static final EventType FORWARD = EventType.getEventType(ForwardEvent.class);

  @Override
  public boolean enabled() {
    return FORWARD.isEnabled() || ROUTE.isEnabled() || SELECTION.isEnabled();
  }

  @Override
  public void selected(
      AttentionRequest request, BackendName backend, String source, Seq<String> considered) {
    SelectionEvent event = new SelectionEvent();
    if (event.shouldCommit()) {
      event.backend = backend.value();
      event.source = source;
      event.device = request.device().label();
      event.headSize = request.layer().headSize();
      event.attentionType = request.layer().type().label();
      event.considered = considered.mkString("; ");
      event.commit();
    }
  }

  @Override
  public void routed(
      LayerGroup group, CommonAttentionMetadata batch, Route route, long nanoseconds) {
    RouteEvent event = new RouteEvent();
    if (event.shouldCommit()) {
      event.group = group.name();
      event.route = route.label();
      event.requests = batch.live();
      event.queryTokens = batch.tokens();
      event.toChildA = route.requests().count(Child.A);
      event.toChildB = route.requests().count(Child.B);
      event.childBShare = childBShare(batch, route.requests());
      event.routing = nanoseconds;
      event.commit();
    }
  }

  @Override
  public void forwarded(
      BackendName backend, LayerGroup group, int requests, int queryTokens, long nanoseconds) {
    forwarded(backend, group, requests, queryTokens, "", nanoseconds);
  }

  @Override
  public void forwarded(
      BackendName backend,
      LayerGroup group,
      int requests,
      int queryTokens,
      String kernels,
      long nanoseconds) {
    ForwardEvent event = new ForwardEvent();
    if (event.shouldCommit()) {
      event.backend = backend.value();
      event.kernels = kernels;
      event.group = group.name();
      event.requests = requests;
      event.queryTokens = queryTokens;
      event.time = nanoseconds;
      event.commit();
    }
  }

  private static float childBShare(CommonAttentionMetadata batch, RequestRoutes routes) {
    int all = 0;
    int onB = 0;
    for (int r = 0; r < routes.size(); r++) {
      all += batch.queryLen(r);
      onB += routes.child(r) == Child.B ? batch.queryLen(r) : 0;
    }
    return all == 0 ? 0 : (float) onB / all;
  }
}

package bifocal.composite;

import static bifocal.composite.TestBatch.lens;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.composite.SummingBackend.Journal;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.BackendName;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.Route;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What an observer hears of a step. */
class ObserverTest {
  private final Journal journal = new Journal();
  private final SummingBackend general = new SummingBackend("GENERAL", journal);
  private final SummingBackend fast = new SummingBackend("FAST", journal);
  private final List<String> heard = new ArrayList<>();

  private final class Listening implements AttentionObserver {
    private final boolean enabled;

    Listening(boolean enabled) {
      this.enabled = enabled;
    }

    @Override
    public boolean enabled() {
      return enabled;
    }

    @Override
    public void routed(
        LayerGroup group, CommonAttentionMetadata batch, Route route, long nanoseconds) {
      assertThat(nanoseconds).isNotNegative();
      heard.add(group.name() + " " + route.label());
    }

    @Override
    public void forwarded(
        BackendName backend, LayerGroup group, int requests, int queryTokens, long nanoseconds) {
      assertThat(nanoseconds).isNotNegative();
      heard.add(backend + " ran " + requests + " requests, " + queryTokens + " tokens");
    }
  }

  private <M extends AttentionMetadata> void run(AttentionBackend<M> backend, boolean enabled) {
    new TestHost<>(backend, TestHost.GROUP, new WatchedLaunch(new Listening(enabled)))
        .run(TestBatch.of(lens(3, 1, 2, 1), 7, 9, 2, 5).build());
  }

  @Test
  void theRouteAndEachChildsShareAreTold() {
    run(
        CompositeBackends.createCompositeBackendOrThrow(
            general, fast, FakePolicy.byRequest(r -> r == 2 ? Child.A : Child.B)),
        true);

    assertThat(heard)
        .containsExactly(
            "layer.0 SPLIT", "GENERAL ran 1 requests, 2 tokens", "FAST ran 3 requests, 5 tokens");
  }

  @Test
  void ofANestedCompositeItsOwnChildrenAreTold() {
    run(
        CompositeBackends.createCompositeBackendOrThrow(
            CompositeBackends.createCompositeBackendOrThrow(
                general, fast, FakePolicy.always(Child.B)),
            new SummingBackend("THIRD", journal),
            FakePolicy.always(Child.A)),
        true);

    assertThat(heard).containsExactly("layer.0 A", "layer.0 B", "FAST ran 4 requests, 7 tokens");
  }

  @Test
  void anObserverThatIsOffHearsNothing() {
    run(
        CompositeBackends.createCompositeBackendOrThrow(general, fast, FakePolicy.always(Child.B)),
        false);

    assertThat(heard).isEmpty();
  }

  @Test
  void aRunThatFailsIsNotTold() {
    journal.beforeForward =
        () -> {
          throw new IllegalStateException("told to fail");
        };
    org.assertj.core.api.Assertions.assertThatThrownBy(
        () ->
            run(
                CompositeBackends.createCompositeBackendOrThrow(
                    general, fast, FakePolicy.always(Child.B)),
                true));

    assertThat(heard).containsExactly("layer.0 B");
  }
}

package bifocal.composite;

import static bifocal.composite.TestBatch.lens;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.composite.SummingBackend.Journal;
import bifocal.composite.SummingBackend.Metadata;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Feature;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.route.Child;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import java.util.Random;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** A composite is a backend, and so a child. */
class NestingTest {
  private final Journal journal = new Journal();
  private final SummingBackend one = new SummingBackend("ONE", journal);
  private final SummingBackend two = new SummingBackend("TWO", journal);
  private final SummingBackend three = new SummingBackend("THREE", journal);

  private AttentionBackend<CompositeMetadata<CompositeMetadata<Metadata, Metadata>, Metadata>>
      nested(FakePolicy inner, FakePolicy outer) {
    return CompositeBackends.createCompositeBackendOrThrow(
        CompositeBackends.createCompositeBackendOrThrow(one, two, inner), three, outer);
  }

  @Test
  void theNameShowsTheNesting() {
    FakePolicy policy = FakePolicy.imagesToA();
    var left = nested(policy, policy);
    var right =
        CompositeBackends.createCompositeBackendOrThrow(
            three, CompositeBackends.createCompositeBackendOrThrow(one, two, policy), policy);

    assertThat(left.name()).isEqualTo(new BackendName("(ONE+TWO)+THREE"));
    assertThat(right.name()).isEqualTo(new BackendName("THREE+(ONE+TWO)"));
  }

  @Test
  void aNamedCompositeKeepsItsNameAsAChild() {
    var named =
        CompositeBackends.createCompositeBackendOrThrow(
            new BackendName("PAIR"), one, two, FakePolicy.imagesToA(), CompositeLimits.NONE);

    assertThat(
            CompositeBackends.createCompositeBackendOrThrow(named, three, FakePolicy.imagesToA())
                .name())
        .isEqualTo(new BackendName("PAIR+THREE"));
  }

  @Test
  void theInnermostGeneralChildWritesWhoeverReads() {
    var host = new TestHost<>(nested(FakePolicy.imagesToA(), FakePolicy.always(Child.B)));
    journal.events.clear();

    host.run(TestBatch.text(2, 6));

    assertThat(journal.events).containsExactly("THREE builds", "ONE writes", "THREE forwards");
  }

  @Test
  void eachLevelRoutesWhatReachesIt() {
    var host =
        new TestHost<>(
            nested(
                FakePolicy.byRequest(r -> r == 0 ? Child.A : Child.B),
                FakePolicy.byRequest(r -> r == 1 ? Child.B : Child.A)));
    journal.events.clear();

    host.run(TestBatch.of(lens(2, 3, 1), 6, 5, 8).build());

    assertThat(journal.events)
        .containsExactly(
            "ONE builds",
            "TWO builds",
            "THREE builds",
            "ONE writes",
            "ONE forwards",
            "TWO forwards",
            "THREE forwards");
  }

  @Test
  void everyRegionHasItsPlaceInOneWorkspace() {
    one.withWorkspace(counters());
    two.withWorkspace(counters());
    three.withWorkspace(counters());

    WorkspacePlan plan =
        nested(FakePolicy.imagesToA(), FakePolicy.imagesToA())
            .workspace(TestHost.GROUP, TestHost.CACHE, TestHost.LIMITS);

    assertThat(plan.zeroed().map(p -> p.region().name()))
        .containsExactly("a/a/counters", "a/b/counters", "b/counters");
    assertThat(plan.zeroed().map(WorkspacePlan.Placed::offset)).doesNotHaveDuplicates();
  }

  private static WorkspacePlan counters() {
    return WorkspacePlan.of(0, new WorkspaceRegion("counters", 64, WorkspaceRegion.State.ZEROED));
  }

  @RepeatedTest(200)
  void divisionsInsideDivisionsEqualTheWholeRun(RepetitionInfo repetition) {
    long seed = 23_000 + repetition.getCurrentRepetition();
    Random random = new Random(seed);
    for (SummingBackend backend : new SummingBackend[] {one, two, three}) {
      if (random.nextBoolean()) {
        backend.withMoreFeatures(Feature.INDIRECT_REQUESTS);
      }
    }
    CommonAttentionMetadata batch = RandomBatches.of(random);
    int inner = random.nextInt();
    int outer = random.nextInt();

    var divided =
        new TestHost<>(
                nested(
                    FakePolicy.byRequest(r -> (inner >> r & 1) == 0 ? Child.A : Child.B),
                    FakePolicy.byRequest(r -> (outer >> r & 1) == 0 ? Child.A : Child.B)))
            .run(batch);

    assertThat(divided.values())
        .as("seed %d", seed)
        .isEqualTo(TestHost.alone(TestHost.GROUP, batch).values());
  }
}

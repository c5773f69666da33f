package bifocal.composite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.composite.SummingBackend.Journal;
import bifocal.composite.SummingBackend.Metadata;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.route.Child;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import bifocal.core.workspace.WorkspaceRegion.State;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** One workspace under two children, of which one leaves rubbish and one needs zeroes. */
class WorkspaceTest {
  private static final long SCRATCH = 1 << 12;
  private static final long COUNTERS = 1 << 10;
  private static final long LEASED = 1 << 8;

  private final Journal journal = new Journal();

  /** Leaves 0xFF in its scratch. */
  private final SummingBackend littering =
      new SummingBackend("LITTERING", journal) {
        @Override
        void onBuild(StepContext step) {
          step.workspace().lease(LEASED, 1).fill((byte) 0xFF);
        }

        @Override
        void onForward(Metadata metadata) {
          metadata.step().workspace().region("scratch").fill((byte) 0xFF);
        }
      }.withWorkspace(
          WorkspacePlan.of(LEASED, new WorkspaceRegion("scratch", SCRATCH, State.SCRATCH)));

  /** Counts in a region that it finds and leaves zeroed, and keeps partial results in scratch. */
  private final class Counting extends SummingBackend {
    private boolean failing;
    private boolean failingBuild;
    private MemorySegment lease = MemorySegment.NULL;
    private Option<Error> error = Option.none();

    Counting() {
      this("COUNTING");
    }

    Counting(String name) {
      super(name, journal);
      withWorkspace(
          WorkspacePlan.of(
              LEASED,
              new WorkspaceRegion("counters", COUNTERS, State.ZEROED),
              new WorkspaceRegion("partials", 2 * SCRATCH, State.SCRATCH)));
    }

    @Override
    void onBuild(StepContext step) {
      MemorySegment counters = step.workspace().region("counters");
      lease = step.workspace().lease(LEASED, 1).fill((byte) 3);
      if (failingBuild) {
        counters.fill((byte) 5);
        throw BifocalException.of(ErrorCode.NATIVE_FAILED, "the plan stopped half-way");
      }
    }

    @Override
    void onForward(Metadata metadata) {
      MemorySegment counters = metadata.step().workspace().region("counters");
      for (long i = 0; i < COUNTERS; i++) {
        assertThat(counters.get(ValueLayout.JAVA_BYTE, i)).as("counter %d", i).isZero();
      }
      assertThat(lease.toArray(ValueLayout.JAVA_BYTE)).as("lease").containsOnly(3);
      counters.fill((byte) 7);
      metadata.step().workspace().region("partials").fill((byte) 9);
      if (failing) {
        throw BifocalException.of(ErrorCode.NATIVE_FAILED, "the kernel stopped half-way");
      }
      error.forEach(
          thrown -> {
            throw thrown;
          });
      counters.fill((byte) 0);
    }
  }

  private final Counting counting = new Counting();

  private TestHost<CompositeMetadata<Metadata, Metadata>> host() {
    return new TestHost<>(
        CompositeBackends.createCompositeBackendOrThrow(
            littering, counting, FakePolicy.imagesToA()));
  }

  /** C12: A, B, A, B, and so on. */
  @Test
  void rubbishOfOneChildNeverReachesTheOthersCounters() {
    var host = host();
    Random random = new Random(12);
    for (int step = 0; step < 500; step++) {
      CommonAttentionMetadata image = TestBatch.image(8 + random.nextInt(20), 30, 24, 28);
      CommonAttentionMetadata text = TestBatch.text(1 + random.nextInt(8), 8 + random.nextInt(40));

      assertThat(host.run(image).values())
          .isEqualTo(TestHost.alone(TestHost.GROUP, image).values());
      assertThat(host.run(text).values()).isEqualTo(TestHost.alone(TestHost.GROUP, text).values());
    }
  }

  /** C12: a failure half-way leaves counters that the next step must not see. */
  @Test
  void countersAreZeroedAgainAfterAFailure() {
    var host = host();
    CommonAttentionMetadata text = TestBatch.text(2, 9);
    counting.failing = true;
    assertThatThrownBy(() -> host.run(text))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NATIVE_FAILED));
    counting.failing = false;

    assertThat(host.run(TestBatch.image(8, 8, 2, 5)).values()).isNotEmpty();
    assertThat(host.run(text).values()).isEqualTo(TestHost.alone(TestHost.GROUP, text).values());
  }

  @Test
  void scratchIsSharedAndCountersAreNot() {
    WorkspacePlan plan = host().workspace.plan();

    assertThat(plan.scratchBytes()).isEqualTo(2 * SCRATCH);
    assertThat(plan.zeroedBytes()).isEqualTo(COUNTERS);
  }

  @Test
  void theMemoryIsWhereItWasAfterManySteps() {
    var host = host();
    MemorySegment before = host.workspace.memory();
    long plan = host.workspace.plan().totalBytes(4);
    for (int step = 0; step < 20; step++) {
      host.run(TestBatch.text(2, 9));
      host.run(TestBatch.image(8, 8, 2, 5));
    }

    assertThat(host.workspace.memory().address()).isEqualTo(before.address());
    assertThat(host.workspace.plan().totalBytes(4)).isEqualTo(plan);
  }

  /** C12, neighbours: a build that stops half-way leaves counters dirty, too. */
  @Test
  void countersAreZeroedAgainAfterABuildThatFailed() {
    counting.failingBuild = true;
    var host = host();
    CommonAttentionMetadata text = TestBatch.text(2, 9);
    assertThatThrownBy(() -> host.run(text)).isInstanceOf(BifocalException.class);
    counting.failingBuild = false;

    assertThat(host.run(text).values()).isEqualTo(TestHost.alone(TestHost.GROUP, text).values());
  }

  /** C12, neighbours: both children count, under one name, and each finds its own zeroes. */
  @Test
  void countersOfOneNameAreTwoRegions() {
    Counting another = new Counting("ANOTHER");
    var host =
        new TestHost<>(
            CompositeBackends.createCompositeBackendOrThrow(
                another, counting, FakePolicy.imagesToA()));
    CommonAttentionMetadata image = TestBatch.image(8, 8, 2, 5);
    CommonAttentionMetadata text = TestBatch.text(2, 9);
    counting.failing = true;
    assertThatThrownBy(() -> host.run(text)).isInstanceOf(BifocalException.class);
    counting.failing = false;

    for (int step = 0; step < 4; step++) {
      assertThat(host.run(image).values())
          .isEqualTo(TestHost.alone(TestHost.GROUP, image).values());
      assertThat(host.run(text).values()).isEqualTo(TestHost.alone(TestHost.GROUP, text).values());
    }
    assertThat(host.workspace.plan().zeroedBytes()).isEqualTo(2 * COUNTERS);
  }

  /** C12, neighbours: a divided batch runs both children in one step, of which one litters. */
  @Test
  void aDividedBatchKeepsLeasesAndCountersApart() {
    var host =
        new TestHost<>(
            CompositeBackends.createCompositeBackendOrThrow(
                counting, littering, FakePolicy.byRequest(r -> r == 0 ? Child.A : Child.B)));
    CommonAttentionMetadata both = TestBatch.of(TestBatch.lens(3, 2), 7, 9).build();
    for (int step = 0; step < 20; step++) {
      assertThat(host.run(both).values()).isEqualTo(TestHost.alone(TestHost.GROUP, both).values());
    }
  }

  /** C12, neighbours: a failure of a composite inside a composite, seen from outside. */
  @Test
  void countersInsideANestedCompositeAreZeroedAfterAFailure() {
    var inner =
        CompositeBackends.createCompositeBackendOrThrow(
            littering, counting, FakePolicy.imagesToA());
    Counting outer = new Counting("OUTER");
    var host =
        new TestHost<>(
            CompositeBackends.createCompositeBackendOrThrow(
                inner,
                outer,
                FakePolicy.of(
                    (group, batch) ->
                        FakePolicy.toChild(batch, batch.tokens() > 4 ? Child.A : Child.B))));
    CommonAttentionMetadata toInner = TestBatch.text(6, 9);
    CommonAttentionMetadata toOuter = TestBatch.text(2, 9);
    host.run(toInner);
    host.run(toOuter);
    counting.failing = true;
    assertThatThrownBy(() -> host.run(toInner)).isInstanceOf(BifocalException.class);
    counting.failing = false;

    assertThat(host.run(toOuter).values())
        .isEqualTo(TestHost.alone(TestHost.GROUP, toOuter).values());
    assertThat(host.run(toInner).values())
        .isEqualTo(TestHost.alone(TestHost.GROUP, toInner).values());
  }

  /** C12, neighbours: what is thrown makes no difference. */
  @Test
  void countersAreZeroedAgainWhateverWasThrown() {
    var host = host();
    CommonAttentionMetadata text = TestBatch.text(2, 9);
    for (Error thrown :
        new Error[] {new OutOfMemoryError("told to"), new StackOverflowError("told to")}) {
      counting.error = Option.some(thrown);
      assertThatThrownBy(() -> host.run(text)).isSameAs(thrown);
      counting.error = Option.none();
      assertThat(host.run(text).values()).isEqualTo(TestHost.alone(TestHost.GROUP, text).values());
    }
  }
}

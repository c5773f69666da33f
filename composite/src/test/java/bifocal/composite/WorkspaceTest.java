package bifocal.composite;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.composite.SummingBackend.Journal;
import bifocal.composite.SummingBackend.Metadata;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import bifocal.core.workspace.WorkspaceRegion.State;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** One workspace under two children, of which one leaves rubbish and one needs zeroes. */
class WorkspaceTest {
  private static final long SCRATCH = 1 << 12;
  private static final long COUNTERS = 1 << 10;

  private final Journal journal = new Journal();

  /** Leaves 0xFF in its scratch. */
  private final SummingBackend littering =
      new SummingBackend("LITTERING", journal) {
        @Override
        void onForward(Metadata metadata) {
          metadata.step().workspace().region("scratch").fill((byte) 0xFF);
        }
      }.withWorkspace(WorkspacePlan.of(0, new WorkspaceRegion("scratch", SCRATCH, State.SCRATCH)));

  /** Counts in a region that it finds and leaves zeroed, and keeps partial results in scratch. */
  private final class Counting extends SummingBackend {
    private boolean failing;

    Counting() {
      super("COUNTING", journal);
      withWorkspace(
          WorkspacePlan.of(
              0,
              new WorkspaceRegion("counters", COUNTERS, State.ZEROED),
              new WorkspaceRegion("partials", 2 * SCRATCH, State.SCRATCH)));
    }

    @Override
    void onBuild(StepContext step) {
      step.workspace().region("counters");
    }

    @Override
    void onForward(Metadata metadata) {
      MemorySegment counters = metadata.step().workspace().region("counters");
      for (long i = 0; i < COUNTERS; i++) {
        assertThat(counters.get(ValueLayout.JAVA_BYTE, i)).as("counter %d", i).isZero();
      }
      counters.fill((byte) 7);
      metadata.step().workspace().region("partials").fill((byte) 9);
      if (failing) {
        throw BifocalException.of(ErrorCode.NATIVE_FAILED, "the kernel stopped half-way");
      }
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
}

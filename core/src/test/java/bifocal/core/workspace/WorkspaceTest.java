package bifocal.core.workspace;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import bifocal.core.error.ErrorCode;
import bifocal.core.workspace.WorkspaceRegion.State;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class WorkspaceTest {
  private static final long SEED = 12;
  private static final WorkspacePlan A =
      WorkspacePlan.of(512, new WorkspaceRegion("scratch", 5000, State.SCRATCH));
  private static final WorkspacePlan B =
      WorkspacePlan.of(
          300,
          new WorkspaceRegion("counters", 8 << 10, State.ZEROED),
          new WorkspaceRegion("partials", 3000, State.SCRATCH));
  private static final WorkspacePlan BOTH = WorkspacePlan.overlay("a.", A, "b.", B);

  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void close() {
    arena.close();
  }

  @Test
  void aStepThatACallUsesIsNotClosed() {
    WorkspacePlan plan = WorkspacePlan.of(64);
    try (Arena arena = Arena.ofConfined()) {
      Workspace workspace = Workspace.wrap(arena.allocate(plan.totalBytes(1), 256), plan, 1);
      Workspace.Step step = workspace.openStep();
      WorkspaceView child = step.child("child/");
      child.enter();
      assertRefused(ErrorCode.IN_USE, step::close);
      assertRefused(ErrorCode.TOO_MANY_STEPS, workspace::openStep);
      assertThat(step.lease(8, 8).byteSize()).isEqualTo(8);
      child.leave();
      step.close();
      step.close();
      assertRefused(ErrorCode.CLOSED, child::enter);
      workspace.openStep().close();
    }
  }

  @Test
  void zeroedRegionsLieApartAndScratchLiesTogether() {
    WorkspacePlan twice = WorkspacePlan.overlay("x.", BOTH, "y.", BOTH);
    Workspace workspace = workspace(twice, 1);
    try (Workspace.Step step = workspace.openStep()) {
      MemorySegment first = step.region("x.b.counters");
      MemorySegment second = step.region("y.b.counters");
      MemorySegment scratch = step.region("x.a.scratch");
      MemorySegment lease = step.lease(1000, 64);
      assertThat(first.asOverlappingSlice(second)).isEmpty();
      assertThat(step.region("x.b.partials").address()).isEqualTo(scratch.address());
      assertThat(step.region("y.b.partials").address()).isEqualTo(scratch.address());
      for (MemorySegment region : new MemorySegment[] {first, second}) {
        assertThat(region.asOverlappingSlice(scratch)).isEmpty();
        assertThat(region.asOverlappingSlice(lease)).isEmpty();
      }
      assertThat(scratch.asOverlappingSlice(lease)).isEmpty();
    }
    assertThat(twice.zeroedBytes()).isEqualTo(2 * (8 << 10));
    assertThat(twice.scratchBytes()).isEqualTo(5120);
    assertThat(twice.stepBytes()).isEqualTo(2 * (512 + 512));
  }

  @Test
  void memoryThatItAllocatedGoesWithIt() {
    Workspace workspace = Workspace.allocate(BOTH, 2);
    MemorySegment memory = workspace.memory();
    assertThat(memory.byteSize()).isEqualTo(BOTH.totalBytes(2));
    try (Workspace.Step step = workspace.openStep()) {
      assertThat(step.region("b.counters").toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
    }
    workspace.close();
    workspace.close();
    assertThat(memory.scope().isAlive()).isFalse();
    assertRefused(ErrorCode.CLOSED, workspace::openStep);
  }

  @Test
  void memoryThatFillsAGoodPartOfALargePageBeginsWithOne() {
    WorkspacePlan plan =
        WorkspacePlan.of(64, new WorkspaceRegion("scratch", 600_000, State.SCRATCH));
    try (Workspace workspace = Workspace.allocate(plan, 1)) {
      assertThat(workspace.memory().address() % (2 << 20)).isZero();
      assertThat(workspace.memory().byteSize()).isEqualTo(plan.totalBytes(1));
    }
  }

  @Test
  void memoryOfAHostStaysTheHosts() {
    MemorySegment memory = arena.allocate(BOTH.totalBytes(1), WorkspacePlan.ALIGNMENT);
    Workspace.wrap(memory, BOTH, 1).close();
    assertThat(memory.scope().isAlive()).isTrue();
  }

  @Test
  void moreMemoryThanThereIsIsRefused() {
    WorkspacePlan huge =
        WorkspacePlan.of(0, new WorkspaceRegion("scratch", 1L << 60, State.SCRATCH));
    assertRefused(ErrorCode.MEMORY_TOO_SMALL, () -> Workspace.allocate(huge, 1));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> Workspace.allocate(BOTH, 0));
  }

  @Test
  void rubbishOfOneChildNeverReachesTheOthersCounters() {
    Workspace workspace = workspace(BOTH, 1);
    Random random = new Random(SEED);
    for (int step = 0; step < 1000; step++) {
      try (Workspace.Step open = workspace.openStep()) {
        if (step % 2 == 0) {
          WorkspaceView a = open.child("a.");
          a.region("scratch").fill((byte) 0xFF);
          a.lease(random.nextInt(512), 16).fill((byte) 0xFF);
        } else {
          WorkspaceView b = open.child("b.");
          assertThat(b.region("counters").mismatch(zeros(8 << 10)))
              .as("step %d of seed %d", step, SEED)
              .isEqualTo(-1);
          b.region("partials").fill((byte) 0xEE);
        }
      }
    }
  }

  @Test
  void aRegionThatAFailedStepLeftDirtyIsZeroedBeforeItsNextUse() {
    Workspace workspace = workspace(BOTH, 1);
    try (Workspace.Step step = workspace.openStep()) {
      step.child("b.").region("counters").fill((byte) 7);
      step.child("b.").markDirty();
    }
    try (Workspace.Step step = workspace.openStep()) {
      assertThat(step.region("b.counters").mismatch(zeros(8 << 10))).isEqualTo(-1);
    }
  }

  @Test
  void onlyTheChildThatFailedIsZeroedAgain() {
    WorkspacePlan twice = WorkspacePlan.overlay("x.", B, "y.", B);
    Workspace workspace = workspace(twice, 1);
    try (Workspace.Step step = workspace.openStep()) {
      step.region("x.counters").fill((byte) 7);
      step.region("y.counters").fill((byte) 7);
      step.child("x.").markDirty();
      assertThat(step.region("x.counters").get(ValueLayout.JAVA_BYTE, 9)).isZero();
      assertThat(step.region("y.counters").get(ValueLayout.JAVA_BYTE, 9)).isEqualTo((byte) 7);
      step.markDirty();
      assertThat(step.region("y.counters").get(ValueLayout.JAVA_BYTE, 9)).isZero();
    }
  }

  @Test
  void memoryThatWasNotCleanIsZeroedOnFirstUse() {
    MemorySegment memory = arena.allocate(BOTH.totalBytes(1), 256);
    memory.fill((byte) 0xFF);
    try (Workspace.Step step = Workspace.wrap(memory, BOTH, 1).openStep()) {
      assertThat(step.region("b.counters").mismatch(zeros(8 << 10))).isEqualTo(-1);
      assertThat(step.region("a.scratch").get(ValueLayout.JAVA_BYTE, 0)).isEqualTo((byte) 0xFF);
    }
  }

  @Test
  void aPlanForManyShapesIsTheLargestRegionByRegion() {
    WorkspacePlan small =
        WorkspacePlan.of(
            900,
            new WorkspaceRegion("counters", 100, State.ZEROED),
            new WorkspaceRegion("partials", 9000, State.SCRATCH));
    WorkspacePlan most = small.max(B);
    assertThat(most.zeroed().head().region().bytes()).isEqualTo(8 << 10);
    assertThat(most.scratch().head().region().bytes()).isEqualTo(9000);
    assertThat(most.stepBytes()).isEqualTo(1024);
    assertThat(most).isEqualTo(B.max(small));
  }

  @Test
  void aRegionThatOnlyOneShapeNeedsIsPlanned() {
    WorkspacePlan more =
        WorkspacePlan.of(
            0,
            new WorkspaceRegion("partials", 3000, State.SCRATCH),
            new WorkspaceRegion("merge", 700, State.SCRATCH));
    WorkspacePlan most = B.max(more);
    assertThat(most.regions().map(WorkspaceRegion::name))
        .containsExactly("counters", "partials", "merge");
    assertThat(most.scratchBytes()).isEqualTo(3072 + 768);
    assertThat(most.zeroedBytes()).isEqualTo(8 << 10);
  }

  @Test
  void aRegionHasOneState() {
    WorkspacePlan other = WorkspacePlan.of(0, new WorkspaceRegion("counters", 100, State.SCRATCH));
    assertRefused(ErrorCode.INTERNAL, () -> B.max(other));
    assertRefused(ErrorCode.INTERNAL, () -> other.max(B));
  }

  @Test
  void aWorkspaceSmallerThanItsPlanIsRefusedWithRegionsAndBothSizes() {
    WorkspacePlan plan =
        WorkspacePlan.of(0, new WorkspaceRegion("b.split_kv", 536_346_624L, State.SCRATCH));
    MemorySegment memory = arena.allocate(4096, 256);
    assertRefused(ErrorCode.WORKSPACE_TOO_SMALL, () -> Workspace.wrap(memory, plan, 1))
        .contains("b.split_kv")
        .contains("4096 bytes")
        .contains("536346624 bytes");
  }

  @Test
  void addressAndSizeStayTheSameFromStepToStep() {
    Workspace workspace = workspace(BOTH, 2);
    long address = workspace.memory().address();
    long leased;
    try (Workspace.Step step = workspace.openStep()) {
      leased = step.lease(100, 64).address();
    }
    for (int i = 0; i < 3; i++) {
      try (Workspace.Step step = workspace.openStep()) {
        assertThat(step.lease(100, 64).address()).isEqualTo(leased);
        assertThat(step.region("b.counters").address()).isEqualTo(address);
      }
    }
    assertThat(workspace.memory().byteSize()).isEqualTo(BOTH.totalBytes(2));
  }

  @Test
  void stepsInFlightHaveLeasesOfTheirOwn() {
    Workspace workspace = workspace(BOTH, 2);
    Workspace.Step first = workspace.openStep();
    Workspace.Step second = workspace.openStep();
    assertThat(first.lease(1024, 64).asOverlappingSlice(second.lease(1024, 64))).isEmpty();
    assertRefused(ErrorCode.TOO_MANY_STEPS, workspace::openStep);
    first.close();
    first.close();
    assertThatCode(() -> workspace.openStep().close()).doesNotThrowAnyException();
  }

  @Test
  void aStepLeasesNoMoreThanWasPlanned() {
    try (Workspace.Step step = workspace(BOTH, 1).openStep()) {
      MemorySegment first = step.lease(3, 1);
      MemorySegment second = step.lease(8, 64);
      assertThat(second.address() - first.address()).isEqualTo(64);
      assertRefused(ErrorCode.WORKSPACE_TOO_SMALL, () -> step.lease(1024 - 72 + 1, 1));
      assertRefused(ErrorCode.WORKSPACE_TOO_SMALL, () -> step.lease(-1, 1));
      assertRefused(ErrorCode.WORKSPACE_TOO_SMALL, () -> step.lease(Long.MAX_VALUE, 1));
      assertThat(step.lease(1024 - 72, 1).byteSize()).isEqualTo(952);
    }
  }

  @Test
  void alignmentsThatAreNoneAreRefused() {
    try (Workspace.Step step = workspace(BOTH, 1).openStep()) {
      for (long alignment : new long[] {0, -8, 3, 512, Long.MIN_VALUE}) {
        assertRefused(ErrorCode.INVALID_PARAMETER, () -> step.lease(1, alignment));
      }
    }
  }

  @Test
  void aSecondStreamIsRefused() {
    Workspace workspace = workspace(BOTH, 2);
    workspace.openStep(0x70).close();
    workspace.openStep(0x70).close();
    assertRefused(ErrorCode.WRONG_STREAM, () -> workspace.openStep(0x90))
        .contains("0x90")
        .contains("0x70");
  }

  @Test
  void unknownRegionsAreRefusedWithThePlannedOnes() {
    try (Workspace.Step step = workspace(BOTH, 1).openStep()) {
      assertRefused(ErrorCode.WORKSPACE_REGION_UNKNOWN, () -> step.region("counters"))
          .contains("b.counters");
    }
  }

  @Test
  void afterCloseNothingIsHandedOut() {
    Workspace workspace = workspace(BOTH, 2);
    Workspace.Step over = workspace.openStep();
    over.close();
    assertRefused(ErrorCode.CLOSED, () -> over.region("b.counters"));
    assertRefused(ErrorCode.CLOSED, () -> over.lease(1, 1));
    Workspace.Step open = workspace.openStep();
    workspace.close();
    workspace.close();
    assertRefused(ErrorCode.CLOSED, () -> open.region("b.counters"));
    assertRefused(ErrorCode.CLOSED, workspace::openStep);
  }

  @Test
  void releasedMemoryIsClosedToo() {
    Arena shortLived = Arena.ofConfined();
    Workspace workspace = Workspace.wrap(shortLived.allocate(BOTH.totalBytes(1), 256), BOTH, 1);
    shortLived.close();
    assertRefused(ErrorCode.CLOSED, workspace::openStep);
  }

  @Test
  void sizesThatCannotBeAreRefused() {
    assertRefused(ErrorCode.NEGATIVE, () -> new WorkspaceRegion("r", -1, State.SCRATCH));
    assertRefused(ErrorCode.NEGATIVE, () -> WorkspacePlan.of(-1));
    assertRefused(ErrorCode.OVERFLOW, () -> WorkspacePlan.of(Long.MAX_VALUE));
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () ->
            WorkspacePlan.of(
                0,
                new WorkspaceRegion("r", 1, State.SCRATCH),
                new WorkspaceRegion("r", 1, State.ZEROED)));
    assertRefused(
        ErrorCode.INVALID_PARAMETER, () -> Workspace.wrap(arena.allocate(1 << 20, 256), BOTH, 0));
  }

  private Workspace workspace(WorkspacePlan plan, int steps) {
    return Workspace.wrap(arena.allocate(plan.totalBytes(steps), 256), plan, steps);
  }

  private static MemorySegment zeros(int bytes) {
    return MemorySegment.ofArray(new byte[bytes]);
  }
}

package bifocal.core.engine;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.Batches;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCachePool;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import bifocal.core.workspace.WorkspaceRegion.State;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

class EnginePlanTest {
  private static final KvCacheSpec CACHE =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.BFLOAT16, 16, 2, 256, 256, KvScales.ONE);
  private static final AttentionLayerSpec SPEC =
      AttentionLayerSpec.Dense.decoder(32, 2, 256, DType.BF16, AttentionMask.CAUSAL);
  private static final BatchLimits LARGEST = new BatchLimits(512, 2048, 1 << 17);

  @Test
  void theNeedIsTheLargestOfAllBatchesAndASmallOneMayNeedMost() {
    RecordingBackend split =
        new RecordingBackend("SPLIT_KV")
            .needing(
                limits ->
                    scratch("split_kv", limits.maxQueryTokens() == 64 ? 9_000_000 : 4_000_000));
    EnginePlan plan =
        EnginePlan.of(
            Vector.of(plan("full", split)),
            Vector.of(LARGEST, new BatchLimits(64, 64, 1 << 17), new BatchLimits(1, 1, 1 << 17)));
    assertThat(plan.workspaceBytes(1)).isEqualTo(Math.ceilDiv(9_000_000, 256) * 256L);
  }

  @Test
  void aWorkspaceThatIsTooSmallIsRefusedAtStartWithEverythingOneNeedsToKnow() {
    RecordingBackend a = new RecordingBackend("GENERAL").needing(limits -> WorkspacePlan.NONE);
    RecordingBackend b =
        new RecordingBackend("FAST").needing(limits -> scratch("b/split_kv", 536_346_624L));
    EnginePlan plan =
        EnginePlan.of(Vector.of(plan("sliding", a), plan("full", b)), Vector.of(LARGEST));
    assertRefused(
            ErrorCode.WORKSPACE_TOO_SMALL,
            () -> plan.requireFits(413_138_944L, 1, "--workspace-bytes"))
        .contains("group full on FAST")
        .contains("32 query heads over 2 KV heads, head size 256")
        .contains("b/split_kv takes 536346624 bytes")
        .contains("maxRequests=512")
        .contains("413138944 bytes")
        .contains("wanted 536346624 bytes")
        .contains("set --workspace-bytes to at least 536346624");
    assertThatCode(() -> plan.requireFits(536_346_624L, 1, "--workspace-bytes"))
        .doesNotThrowAnyException();
  }

  @Test
  void scratchOfGroupsIsSharedAndLeasesAddUp() {
    RecordingBackend first =
        new RecordingBackend("FIRST")
            .needing(
                limits ->
                    WorkspacePlan.of(
                        1000,
                        new WorkspaceRegion("counters", 512, State.ZEROED),
                        new WorkspaceRegion("scratch", 4096, State.SCRATCH)));
    RecordingBackend second =
        new RecordingBackend("SECOND").needing(limits -> scratch("scratch", 8192));
    EnginePlan plan =
        EnginePlan.of(Vector.of(plan("sliding", first), plan("full", second)), Vector.of(LARGEST));
    assertThat(plan.workspace().scratchBytes()).isEqualTo(8192);
    assertThat(plan.workspace().zeroedBytes()).isEqualTo(512);
    assertThat(plan.workspaceBytes(3)).isEqualTo(512 + 8192 + 3 * 1024);
    assertThat(plan.workspace().regions().map(WorkspaceRegion::name))
        .containsExactly("sliding/counters", "sliding/scratch", "full/scratch");
  }

  @Test
  void graphsAreAsStrongAsTheWeakestGroup() {
    EnginePlan plan =
        EnginePlan.of(
            Vector.of(
                plan("sliding", new RecordingBackend("A").capturing(GraphSupport.UNIFORM_BATCH)),
                plan(
                    "full",
                    new RecordingBackend("B").capturing(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE)),
                plan("wide", new RecordingBackend("C").capturing(GraphSupport.ALWAYS))),
            Vector.of(LARGEST));
    assertThat(plan.graphs()).isEqualTo(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);
  }

  @Test
  void aBackendThatStatesNoLevelIsNeverCaptured() {
    RecordingBackend silent = new RecordingBackend("SILENT");
    assertThat(EnginePlan.of(Vector.of(plan("full", silent)), Vector.of(LARGEST)).graphs())
        .isEqualTo(GraphSupport.NEVER);
  }

  @Test
  void aGroupOpenedFromThePlanFindsItsOwnRegions() {
    List<Long> found = new ArrayList<>();
    RecordingBackend backend =
        new RecordingBackend("B")
            .needing(limits -> scratch("partials", 700))
            .building(step -> found.add(step.workspace().region("partials").byteSize()));
    EnginePlan plan =
        EnginePlan.of(
            Vector.of(plan("sliding", new RecordingBackend("A")), plan("full", backend)),
            Vector.of(LARGEST));
    try (Arena arena = Arena.ofConfined();
        Workspace workspace =
            Workspace.wrap(arena.allocate(plan.workspaceBytes(1), 256), plan.workspace(), 1);
        Workspace.Step step = workspace.openStep();
        GroupRuntime<?> runtime = plan.groups().last().open(layer -> LayerParameters.NONE)) {
      runtime.step(
          new StepContext(new HostLaunchContext(AttentionObserver.NONE), step, 0),
          Batches.of(new int[] {1}, new int[] {1}).build());
    }
    assertThat(found).containsExactly(700L);
  }

  @Test
  void aPoolOfThePlansGroupsHasACacheForEachLayer() {
    GroupPlan group = plan("full", new RecordingBackend("A"));
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(group.blocks(3)))) {
      assertThat(pool.group("full").view("full").spec()).isEqualTo(CACHE);
      assertThat(pool.group("full").numBlocks()).isEqualTo(3);
    }
  }

  @Test
  void aPlanHasGroupsOfDifferentNamesAndBatches() {
    GroupPlan group = plan("full", new RecordingBackend("A"));
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () -> EnginePlan.of(Vector.of(group, group), Vector.of(LARGEST)));
    assertRefused(
        ErrorCode.INVALID_PARAMETER, () -> EnginePlan.of(Vector.of(group), Vector.empty()));
    assertRefused(
        ErrorCode.INVALID_PARAMETER, () -> EnginePlan.of(Vector.empty(), Vector.of(LARGEST)));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> new BatchLimits(0, 1, 1));
  }

  private static GroupPlan plan(String name, RecordingBackend backend) {
    return new GroupPlan(LayerGroup.of(name, SPEC), backend, CACHE);
  }

  private static WorkspacePlan scratch(String name, long bytes) {
    return WorkspacePlan.of(0, new WorkspaceRegion(name, bytes, State.SCRATCH));
  }
}

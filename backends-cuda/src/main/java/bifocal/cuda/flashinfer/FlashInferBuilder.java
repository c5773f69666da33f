package bifocal.cuda.flashinfer;

import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.flashinfer.FlashInferStep.Task;
import bifocal.cuda.triton.StepStaging;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;

/**
 * Plans each step, once for all layers of a group: runs are put together by the kernel that serves
 * them best, pages are listed in pinned memory and copied to the device by one copy, and each
 * module plans its own part.
 */
final class FlashInferBuilder implements AttentionMetadataBuilder<FlashInferMetadata> {
  /** Batches that may be captured. */
  static final GraphSupport GRAPHS = GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE;

  static final String PARTIALS = "partials";

  /** Counters of XQA, which are zero between its launches. */
  static final String COUNTERS = "counters";

  private final FlashInferDevice device;
  private final AttentionLayerSpec.Dense layer;
  private final KvCacheSpec cache;
  private final LayerModules modules;
  private final DecodeKernels decode;
  private final WorkspaceBytes bytes;
  private final StepStaging staging;
  private final Planner planner;

  FlashInferBuilder(
      FlashInferDevice device,
      AttentionLayerSpec.Dense layer,
      KvCacheSpec cache,
      DecodeKernels decode) {
    this.device = device;
    this.layer = layer;
    this.cache = cache;
    this.decode = decode;
    this.modules = LayerModules.of(device.pack(), layer, cache.blockSize());
    this.bytes = new WorkspaceBytes(layer, device.multiprocessors());
    this.staging = new StepStaging(device.context(), "the builder");
    this.planner = new Planner(device, layer, cache, bytes);
  }

  /** Workspace of a layer's largest batch. */
  static WorkspacePlan workspace(
      FlashInferDevice device,
      AttentionLayerSpec.Dense layer,
      KvCacheSpec cache,
      BatchLimits limits) {
    WorkspaceBytes bytes = new WorkspaceBytes(layer, device.multiprocessors());
    LayerModules modules = LayerModules.of(device.pack(), layer, cache.blockSize());
    // A request may come as one run per query token, each with an entry without queries behind it.
    long rows = Math.max(limits.maxRequests(), limits.maxQueryTokens());
    long entries = 2 * rows;
    long pages = limits.maxRequests() * (cache.blocksFor(limits.maxSeqLen()) + 1L);
    int tasks = Task.values().length;
    long arrays = tasks * (3 * (entries + 2) + pages) + 2 * rows;
    long plans = 0;
    for (Option<? extends ModuleKey> key :
        List.of(modules.few(), modules.few(), modules.many(), modules.many(), modules.single())) {
      plans += key.map(known -> bytes.plan(known, rows, entries)).getOrElse(0L);
    }
    long partials = bytes.partials(limits.maxRequests());
    if (modules.xqa().isEmpty()) {
      return WorkspacePlan.of(
          WorkspaceBytes.aligned(arrays * Integer.BYTES) + plans, scratch(partials));
    }
    long single = bytes.singlePartials() + bytes.singleRows(limits.maxRequests());
    return WorkspacePlan.of(
        WorkspaceBytes.aligned((arrays + rows + pages) * Integer.BYTES) + plans,
        scratch(Math.max(partials, single)),
        new WorkspaceRegion(
            COUNTERS, bytes.singleCounters(limits.maxRequests()), WorkspaceRegion.State.ZEROED));
  }

  private static WorkspaceRegion scratch(long bytes) {
    return new WorkspaceRegion(PARTIALS, bytes, WorkspaceRegion.State.SCRATCH);
  }

  @Override
  public FlashInferMetadata build(
      StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
    step.launch().requireOwner();
    CudaLaunchContext launch = CudaLaunchContext.of(step.launch());
    requirePlannable(launch, batch);
    List<LaunchDraft> drafts = drafts(batch);
    if (drafts.isEmpty()) {
      return new FlashInferStep(
          step.workspace(),
          batch.tokens(),
          PageTable.UNKNOWN,
          List.of(),
          false,
          new FlashInferStep.SumRows(0, 0, 0),
          GraphKey.EAGER);
    }
    return planner.plan(step.workspace(), launch, staging, batch, drafts);
  }

  private static void requirePlannable(CudaLaunchContext launch, CommonAttentionMetadata batch) {
    if (launch.queue().capturing()) {
      throw BifocalException.of(
              ErrorCode.NOT_CAPTURABLE, "plan of a step", "a stream that captures", "one that runs")
          .withRemedy("build the step before the capture begins");
    }
    if (batch.independentKeys()) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED,
          "keys of another sequence",
          "encoder-decoder attention",
          "queries that are the last of their keys");
    }
  }

  /** Runs of a batch by what computes them. */
  private record Runs(RunList one, RunList few, RunList causal, RunList full) {}

  /** The launches of a batch: none for a list of runs that is empty. */
  private List<LaunchDraft> drafts(CommonAttentionMetadata batch) {
    List<LaunchDraft> drafts = new ArrayList<>();
    Option<ModuleKey.Xqa> xqa = modules.xqa().filter(key -> decode == DecodeKernels.XQA);
    boolean apart = xqa.isDefined();
    Runs runs = runs(batch, apart);
    Option<PageRows> single =
        xqa.flatMap(key -> PageRows.of(key, batch, cache, runs.one(), uniform(batch, runs.one())));
    if (single.isDefined()) {
      // It loads its kernel when it is opened, which it cannot while a stream records.
      device.module(single.get().key());
      drafts.add(few(batch, Task.ONE, runs.one(), single.get().pages(), single));
    }
    boolean left = apart && single.isEmpty() && runs.one().size() > 0;
    RunList few = left ? runs(batch, false).few() : runs.few();
    if (few.size() > 0) {
      drafts.add(few(batch, Task.FEW, few, PageTable.of(batch, cache, few), Option.none()));
    }
    if (runs.causal().size() > 0) {
      drafts.add(many(batch, Task.CAUSAL, runs.causal()));
    }
    if (runs.full().size() > 0) {
      drafts.add(many(batch, Task.FULL, runs.full()));
    }
    return drafts;
  }

  /**
   * Puts runs together.
   *
   * @param apart whether runs of one query are kept apart from those of few
   */
  private Runs runs(CommonAttentionMetadata batch, boolean apart) {
    RunList few = list(batch.live());
    Runs runs =
        new Runs(apart ? list(batch.live()) : few, few, list(batch.live()), list(batch.live()));
    for (int r = 0; r < batch.live(); r++) {
      if (batch.queryLen(r) > 0) {
        listOf(batch, r, runs).add(batch, r);
      }
    }
    return runs;
  }

  private RunList list(int capacity) {
    return new RunList(cache.blockSize(), layer.mask().leftWindow(), capacity);
  }

  private RunList listOf(CommonAttentionMetadata batch, int request, Runs runs) {
    int right = batch.rightWindow(request, layer.mask());
    if (right > 0) {
      throw BifocalException.ofRequest(
          ErrorCode.UNSUPPORTED,
          request,
          "right window " + right,
          "no later keys, or all until the end of the run");
    }
    int queries = batch.queryLen(request);
    // A single query is the last of its keys, and sees none beyond itself in any case.
    if (queries == 1) {
      return runs.one();
    }
    if (right < 0) {
      return runs.full();
    }
    return queries <= LayerModules.FEW ? runs.few() : runs.causal();
  }

  /** Whether a batch is one that may be captured, if its kernels can. */
  private static boolean uniform(CommonAttentionMetadata batch, RunList runs) {
    return GRAPHS.covers(batch)
        && !batch.hasRuns()
        && batch.blockTable().device().hostReadable()
        && runs.rowsTogether();
  }

  private LaunchDraft few(
      CommonAttentionMetadata batch,
      Task task,
      RunList runs,
      PageTable pages,
      Option<PageRows> single) {
    boolean uniform = uniform(batch, runs) && pages.tight();
    boolean onCores =
        modules.single().isDefined()
            && (decode == DecodeKernels.CUDA_CORES || modules.few().isEmpty())
            && runs.singles()
            && runs.rowsTogether()
            && pages.tight()
            && (batch.live() == batch.requests() || modules.few().isEmpty());
    ModuleKey key = onCores ? modules.single().get() : require(modules.few());
    boolean pads = key instanceof ModuleKey.Prefill prefill && isFa2(prefill);
    boolean graph = uniform && (pads || (onCores && runs.size() == batch.requests()));
    return new LaunchDraft(
        task,
        runs,
        pages,
        key,
        ModuleEntry.MASK_CAUSAL,
        graph ? batch.requests() : LaunchDraft.EAGER,
        single);
  }

  private static boolean isFa2(ModuleKey.Prefill prefill) {
    return prefill.engine() == ModuleKey.Engine.FA2;
  }

  private LaunchDraft many(CommonAttentionMetadata batch, Task task, RunList runs) {
    ModuleKey.Prefill key = require(modules.many());
    int mask = task == Task.FULL ? ModuleEntry.MASK_NONE : ModuleEntry.MASK_CAUSAL;
    device.module(key).requireMask(mask);
    return new LaunchDraft(
        task, runs, PageTable.of(batch, cache, runs), key, mask, LaunchDraft.EAGER, Option.none());
  }

  private ModuleKey.Prefill require(Option<ModuleKey.Prefill> module) {
    return module.getOrElseThrow(
        () -> device.pack().find(modules.wanted()).getError().asException());
  }

  /** Decodes first: their keys are divided among programs when their rows follow each other. */
  @Override
  public Option<Integer> decodeThreshold() {
    return Option.some(1);
  }

  @Override
  public void close() {
    staging.close();
  }
}

package bifocal.cuda.flashinfer;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphKey;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspaceView;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.flashinfer.FlashInferStep.Launch;
import bifocal.cuda.flashinfer.FlashInferStep.Planned;
import bifocal.cuda.flashinfer.FlashInferStep.Single;
import bifocal.cuda.flashinfer.FlashInferStep.SumRows;
import bifocal.cuda.flashinfer.FlashInferStep.Task;
import bifocal.cuda.triton.StepStaging;
import bifocal.tvm.DeviceStream;
import bifocal.tvm.ObjectReference;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Turns drafts of launches into a step.
 *
 * <p>Leased memory holds the plans and behind them all arrays; pinned memory holds the arrays, then
 * what only plans read, then the plans. Of a step that can be captured everything but the list of
 * pages lies at the same place each time; where XQA is captured, all that XQA reads does, which
 * therefore comes first.
 */
final class Planner {
  private static final long ALIGNMENT = 256;

  private final FlashInferDevice device;
  private final AttentionLayerSpec.Dense layer;
  private final KvCacheSpec cache;
  private final WorkspaceBytes bytes;
  private final Map<ModuleKey, PlanCall> calls = new HashMap<>();

  Planner(
      FlashInferDevice device,
      AttentionLayerSpec.Dense layer,
      KvCacheSpec cache,
      WorkspaceBytes bytes) {
    this.device = device;
    this.layer = layer;
    this.cache = cache;
    this.bytes = bytes;
  }

  /** Where the parts of one step lie. */
  private final class Layout {
    private final List<LaunchDraft> drafts;
    private final long[] planBytes;
    private final int[] arrayAt;
    private final int[] pageAt;
    private final int[] keysAt;
    private final int[] rowsAt;
    private final int[] hostAt;
    private final int[] ranges;
    private final long plans;
    private final long arrays;
    private final long hostOnly;

    Layout(List<LaunchDraft> drafts) {
      this.drafts = drafts;
      int count = drafts.size();
      this.planBytes = new long[count];
      this.arrayAt = new int[count];
      this.pageAt = new int[count];
      this.keysAt = new int[count];
      this.rowsAt = new int[count];
      this.hostAt = new int[count];
      this.ranges = ranges(drafts);
      long allPlans = 0;
      int at = ranges.length;
      for (int i = 0; i < count; i++) {
        LaunchDraft draft = drafts.get(i);
        planBytes[i] = bytes.plan(draft.key(), draft.mostRows(), draft.mostEntries());
        allPlans += planBytes[i];
        keysAt[i] = at;
        at += draft.single().map(PageRows::entries).getOrElse(0);
        rowsAt[i] = at;
        at += draft.single().map(PageRows::copiedInts).getOrElse(0);
      }
      for (int i = 0; i < count; i++) {
        arrayAt[i] = at;
        at += drafts.get(i).arrayInts();
      }
      for (int i = 0; i < count; i++) {
        pageAt[i] = at;
        at += drafts.get(i).pages().length();
      }
      this.plans = allPlans;
      this.arrays = WorkspaceBytes.aligned((long) at * Integer.BYTES);
      int host = 0;
      for (int i = 0; i < count; i++) {
        hostAt[i] = host;
        host += drafts.get(i).planInts();
      }
      this.hostOnly = WorkspaceBytes.aligned((long) host * Integer.BYTES);
    }

    long deviceBytes() {
      return plans + arrays;
    }

    long pinnedBytes() {
      return arrays + hostOnly + plans;
    }
  }

  /** Rows of the launches, neighbours joined: first row and count. */
  private static int[] ranges(List<LaunchDraft> drafts) {
    int[] ranges = new int[2 * drafts.stream().mapToInt(draft -> draft.runs().size()).sum()];
    int used = 0;
    for (LaunchDraft draft : drafts) {
      RunList runs = draft.runs();
      for (int run = 0; run < runs.size(); run++) {
        boolean next = used > 0 && ranges[used - 2] + ranges[used - 1] == runs.queryStart(run);
        if (next) {
          ranges[used - 1] += runs.queryLen(run);
        } else {
          ranges[used++] = runs.queryStart(run);
          ranges[used++] = runs.queryLen(run);
        }
      }
    }
    return Arrays.copyOf(ranges, used);
  }

  FlashInferStep plan(
      WorkspaceView workspace,
      CudaLaunchContext launch,
      StepStaging staging,
      CommonAttentionMetadata batch,
      List<LaunchDraft> drafts) {
    Layout layout = new Layout(drafts);
    StepStaging.Slot slot = staging.take(layout.pinnedBytes());
    MemorySegment pinned = slot.host();
    MemorySegment lease = workspace.lease(layout.deviceBytes(), ALIGNMENT);
    MemorySegment arrays = lease.asSlice(layout.plans, layout.arrays);
    MemorySegment hostOnly = pinned.asSlice(layout.arrays, layout.hostOnly);
    int largest = writeArrays(layout, pinned, hostOnly);
    TensorView floats = bytes(workspace.region(FlashInferBuilder.PARTIALS), launch.device());
    List<ObjectReference> made = new ArrayList<>();
    List<Launch> launches = new ArrayList<>();
    StringBuilder route = new StringBuilder();
    boolean lastBeside = fullBeside(drafts);
    try {
      if (lastBeside) {
        launch.queue().prepareFork();
      }
      long at = 0;
      for (int i = 0; i < drafts.size(); i++) {
        LaunchDraft draft = drafts.get(i);
        MemorySegment ints = lease.asSlice(at, layout.planBytes[i]);
        MemorySegment pinnedPlan =
            pinned.asSlice(layout.arrays + layout.hostOnly + at, layout.planBytes[i]);
        at += layout.planBytes[i];
        PlanCall.Plan plan = plan(launch, draft, layout, i, floats, ints, pinnedPlan, hostOnly);
        made.add(plan.object());
        RowPatch.apply(draft, plan.numbers(), launch.queue(), pinnedPlan, ints);
        Planned planned = launched(draft, layout, i, plan, ints, floats, arrays, launch.device());
        launches.add(
            draft.single().isDefined()
                ? single(draft.single().get(), planned, layout, i, workspace, arrays)
                : planned);
        appendRoute(route, draft, plan);
      }
      slot.upload(launch.queue(), arrays);
    } catch (RuntimeException | Error failure) {
      made.forEach(ObjectReference::close);
      // Copies from pinned memory may be under way, and nothing marks their end.
      settle(launch, failure);
      throw failure;
    }
    return new FlashInferStep(
        workspace,
        batch.tokens(),
        largest,
        List.copyOf(launches),
        lastBeside,
        sums(layout, arrays, batch),
        graphKey(drafts, batch, route));
  }

  /** Whether images run beside the rest: not where both may leave partial outputs. */
  private boolean fullBeside(List<LaunchDraft> drafts) {
    boolean window = layer.mask().leftWindow() >= 0;
    LaunchDraft last = drafts.getLast();
    List<LaunchDraft> others = drafts.subList(0, drafts.size() - 1);
    return last.task() == Task.FULL
        && !others.isEmpty()
        && !(last.partials(window) && others.stream().anyMatch(draft -> draft.partials(window)));
  }

  private static void settle(CudaLaunchContext launch, Throwable failure) {
    try {
      launch.queue().synchronize();
    } catch (RuntimeException second) {
      failure.addSuppressed(second);
    }
  }

  private static int writeArrays(Layout layout, MemorySegment pinned, MemorySegment hostOnly) {
    int largest = 0;
    boolean known = true;
    for (int i = 0; i < layout.drafts.size(); i++) {
      LaunchDraft draft = layout.drafts.get(i);
      draft.writeArrays(pinned, layout.arrayAt[i]);
      draft.writePlan(hostOnly, layout.hostAt[i]);
      int most = draft.pages().write(draft.runs(), pinned, layout.pageAt[i]);
      int list = layout.pageAt[i];
      int keys = layout.keysAt[i];
      int rows = layout.rowsAt[i];
      draft.single().forEach(single -> single.write(pinned, keys, rows, list));
      known &= most != PageTable.UNKNOWN;
      largest = Math.max(largest, most);
    }
    for (int i = 0; i < layout.ranges.length; i++) {
      pinned.setAtIndex(ValueLayout.JAVA_INT, i, layout.ranges[i]);
    }
    return known ? largest : PageTable.UNKNOWN;
  }

  private PlanCall.Plan plan(
      CudaLaunchContext launch,
      LaunchDraft draft,
      Layout layout,
      int index,
      TensorView floats,
      MemorySegment ints,
      MemorySegment pinned,
      MemorySegment hostOnly) {
    int at = layout.hostAt[index];
    int entries = draft.entries();
    int rows = Math.max(draft.runs().queries(), draft.padded());
    boolean divisible =
        draft.divisible(layer.mask().leftWindow() >= 0)
            && (!draft.graph() || bytes.divides(draft.padded()));
    return call(draft.key())
        .call(
            DeviceStream.of(launch.device(), launch.stream()),
            new PlanCall.Inputs(
                floats,
                bytes(ints, launch.device()),
                bytes(pinned, Device.HOST),
                LaunchDraft.ints(hostOnly, Device.HOST, at, entries + 1),
                LaunchDraft.ints(hostOnly, Device.HOST, at + draft.pageStartAt(), entries + 1),
                LaunchDraft.ints(hostOnly, Device.HOST, at + draft.lastAt(), entries),
                rows,
                entries,
                draft.graph(),
                divisible,
                draft.task() != Task.FULL));
  }

  private PlanCall call(ModuleKey key) {
    PlanCall known = calls.get(key);
    if (known == null || known.owner() != Thread.currentThread()) {
      known = new PlanCall(device.module(key), layer, cache);
      calls.put(key, known);
    }
    return known;
  }

  private static void appendRoute(StringBuilder route, LaunchDraft draft, PlanCall.Plan plan) {
    for (PageRows single : draft.single()) {
      route.append(single.key().label()).append('[').append(single.columns()).append(']');
    }
    // A plan that a captured XQA does not read may differ from step to step.
    if (draft.single().isEmpty() || draft.graph()) {
      route.append(draft.key().label()).append(Arrays.toString(plan.numbers()));
    }
    route.append(draft.firstRow());
  }

  private Single single(
      PageRows rows,
      Planned planned,
      Layout layout,
      int index,
      WorkspaceView workspace,
      MemorySegment arrays) {
    Device place = planned.ints().device();
    MemorySegment counters = workspace.region(FlashInferBuilder.COUNTERS);
    long needed = (long) rows.entries() * layer.numKvHeads() * Integer.BYTES;
    MemorySegment floats = workspace.region(FlashInferBuilder.PARTIALS);
    long partials = bytes.singlePartials();
    long packed = partials + bytes.singleRows(rows.padded());
    if (counters.byteSize() < needed || floats.byteSize() < packed) {
      throw BifocalException.of(
          ErrorCode.WORKSPACE_TOO_SMALL,
          "workspace of decodes",
          counters.byteSize() + " and " + floats.byteSize() + " bytes",
          needed + " and " + packed + " bytes for " + rows.entries() + " requests");
    }
    return new Single(
        rows.key(),
        rows.pages().copied()
            ? LaunchDraft.ints(arrays, place, layout.rowsAt[index], rows.copiedInts())
            : rows.inPlace(),
        rows.mostKeys(),
        LaunchDraft.ints(arrays, place, layout.keysAt[index], rows.entries()),
        bytes(counters, place),
        bytes(floats.asSlice(0, partials), place),
        TensorView.of(
            floats.asSlice(partials),
            layer.dtype(),
            place,
            rows.padded(),
            layer.numHeads(),
            layer.headSize()),
        arrays.address(),
        planned.firstRow(),
        planned.rows(),
        rows.padded(),
        planned);
  }

  private static Planned launched(
      LaunchDraft draft,
      Layout layout,
      int index,
      PlanCall.Plan plan,
      MemorySegment ints,
      TensorView floats,
      MemorySegment arrays,
      Device place) {
    int at = layout.arrayAt[index];
    int entries = draft.entries();
    return new Planned(
        draft.key(),
        draft.mask(),
        List.of(plan.object()),
        bytes(ints, place),
        floats,
        LaunchDraft.ints(arrays, place, at, entries + 1),
        LaunchDraft.ints(arrays, place, at + draft.pageStartAt(), entries + 1),
        draft.pages().copied()
            ? LaunchDraft.ints(arrays, place, layout.pageAt[index], draft.pages().length())
            : flat(draft.pages().inPlace()),
        LaunchDraft.ints(arrays, place, at + draft.lastAt(), entries),
        draft.firstRow(),
        draft.rows(),
        draft.graph());
  }

  private static TensorView flat(TensorView table) {
    long length = (table.size(0) - 1) * table.stride(0) + table.size(1);
    return TensorView.of(table.data(), DType.INT32, table.device(), length);
  }

  private static TensorView bytes(MemorySegment memory, Device place) {
    return TensorView.of(memory, DType.UINT8, place, memory.byteSize());
  }

  private static SumRows sums(Layout layout, MemorySegment arrays, CommonAttentionMetadata batch) {
    int longest = 0;
    for (int i = 1; i < layout.ranges.length; i += 2) {
      longest = Math.max(longest, layout.ranges[i]);
    }
    boolean graph = layout.drafts.getFirst().capturable();
    return new SumRows(
        arrays.address(),
        layout.ranges.length / 2,
        graph ? Math.max(longest, batch.requests()) : longest);
  }

  private static GraphKey graphKey(
      List<LaunchDraft> drafts, CommonAttentionMetadata batch, StringBuilder route) {
    return drafts.size() == 1 && drafts.getFirst().capturable()
        ? new GraphKey(route.toString(), batch.requests(), batch.requests(), true)
        : GraphKey.EAGER;
  }
}

package bifocal.examples.cache;

import bifocal.composite.CompositeBackends;
import bifocal.composite.CompositeMetadata;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheView;
import bifocal.core.device.Device;
import bifocal.core.engine.EnginePlan;
import bifocal.core.engine.GroupPlan;
import bifocal.core.engine.GroupRuntime;
import bifocal.core.engine.GroupStep;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.cpu.select.CpuPolicy;
import bifocal.examples.cache.HostBlocks.Sequence;
import bifocal.reference.Agreement;
import bifocal.reference.ReferenceAttention;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * A host that has its own memory, its own block manager and its own thread, and makes everything by
 * constructors. Bifocal reads and writes where it is told, and owns none of it.
 */
public final class BringYourOwnCache {
  private static final Dense LAYER =
      Dense.decoder(
          8,
          2,
          64,
          DType.BF16,
          AttentionMask.CAUSAL.withWindow(48).withImages(ImageMask.CLAMP_PAST));
  private static final LayerGroup LAYERS = new LayerGroup("sliding", LAYER, Vector.of("0", "1"));
  private static final BatchLimits LARGEST = new BatchLimits(3, 64, 64);
  private static final int BLOCKS = 10;
  private static final int TOKENS_PER_BLOCK = 16;
  private static final int COLUMNS = LARGEST.maxSeqLen() / TOKENS_PER_BLOCK;

  /** Images by row, as first and last position. */
  private static final int[][] IMAGES = {{4, 19}, {}, {2, 9}};

  private final GroupPlan plan;
  private final Seq<KvCacheView> caches;
  private final HostBlocks blocks;
  private final List<Sequence> sequences;
  private final int[] names = {0, 1, 2};
  private final MemorySegment table;
  private final MemorySegment slots;
  private final HostLaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);

  private BringYourOwnCache(GroupPlan plan, Arena arena) {
    this.plan = plan;
    // A block of this host holds its record of every layer, so a layer's records lie apart.
    long record = plan.cache().blockBytes();
    long block = record * LAYERS.layers().size();
    MemorySegment memory = arena.allocate(BLOCKS * block, 64);
    this.caches =
        Vector.range(0, LAYERS.layers().size())
            .map(
                layer ->
                    KvCacheView.wrap(
                        memory.asSlice(layer * record), plan.cache(), Device.HOST, BLOCKS, block));
    this.blocks = new HostBlocks(memory, block, TOKENS_PER_BLOCK);
    this.sequences = List.of(blocks.new Sequence(), blocks.new Sequence(), blocks.new Sequence());
    this.table = arena.allocate(ValueLayout.JAVA_INT, LARGEST.maxRequests() * COLUMNS);
    this.slots = arena.allocate(ValueLayout.JAVA_LONG, LARGEST.maxQueryTokens());
  }

  public static void main(String[] arguments) {
    CpuRuntime runtime = CpuRuntime.ofThisJvm();
    AttentionBackend<?> backend =
        CompositeBackends.createCompositeBackendOrThrow(
            new FlexAttentionBackend(runtime),
            new CpuAttnBackend(runtime),
            new MMPrefixAttentionRouting());
    Validation<Seq<InvalidReason>, GroupPlan> plan =
        GroupPlan.of(
            LAYERS,
            backend,
            AttentionRequest.of(LAYER, CpuPolicy.thisHost()).withBlockSize(TOKENS_PER_BLOCK));
    if (plan.isInvalid()) {
      plan.getError().forEach(reason -> System.out.println("refused: " + reason.text()));
      return;
    }
    try (Arena arena = Arena.ofShared()) {
      new BringYourOwnCache(plan.get(), arena).serve(arena);
    }
  }

  private void serve(Arena arena) {
    System.out.printf(
        "%s over %s blocks of %d tokens, %d bytes for each layer%n",
        plan.backend().name(),
        plan.cache().layout().name(),
        plan.cache().blockSize(),
        plan.cache().blockBytes());
    EnginePlan engine = EnginePlan.of(Vector.of(plan), Vector.of(LARGEST));
    MemorySegment scratch = arena.allocate(engine.workspaceBytes(1), 256);
    try (Workspace workspace = Workspace.wrap(scratch, engine.workspace(), 1);
        GroupRuntime<?> layers = plan.open(layer -> LayerParameters.NONE)) {
      step(workspace, layers, 30, 0, 0);
      step(workspace, layers, 1, 40, 0);
      step(workspace, layers, 1, 15, 14);
      System.out.println("sequence 0 ends; sequence 3 takes its place");
      sequences.get(0).end();
      names[0] = 3;
      step(workspace, layers, 40, 1, 1);
      step(workspace, layers, 1, 1, 1);
    }
  }

  /** One step: the host schedules so many tokens of each sequence. */
  private void step(Workspace workspace, GroupRuntime<?> layers, int... newTokens) {
    CommonAttentionMetadata batch = batch(newTokens);
    try (Workspace.Step open = workspace.openStep()) {
      GroupStep<?> step = layers.step(new StepContext(launch, open, 0), batch);
      double worst = 0;
      for (int layer = 0; layer < LAYERS.layers().size(); layer++) {
        worst = Math.max(worst, attend(step, layer));
      }
      System.out.printf(
          Locale.ROOT,
          "tokens %-11s blocks %-34s route %-5s error %.0e%n",
          Arrays.toString(newTokens),
          sequences.stream().map(Sequence::blocks).toList(),
          route(step.metadata()),
          worst);
    }
  }

  /** Block table and slots are the host's; a batch only says where they are. */
  private CommonAttentionMetadata batch(int[] newTokens) {
    int[] queryStartLoc = new int[newTokens.length + 1];
    int[] seqLens = new int[newTokens.length];
    table.fill((byte) 0);
    for (int row = 0; row < newTokens.length; row++) {
      Sequence sequence = sequences.get(row);
      sequence.append(newTokens[row]);
      seqLens[row] = sequence.length();
      queryStartLoc[row + 1] = queryStartLoc[row] + newTokens[row];
      for (int i = 0; i < sequence.blocks().size(); i++) {
        table.setAtIndex(ValueLayout.JAVA_INT, (long) row * COLUMNS + i, sequence.blocks().get(i));
      }
      for (int i = 0; i < newTokens[row]; i++) {
        slots.setAtIndex(
            ValueLayout.JAVA_LONG,
            queryStartLoc[row] + i,
            sequence.slot(sequence.length() - newTokens[row] + i));
      }
    }
    return CommonAttentionMetadata.builder(
            queryStartLoc,
            seqLens,
            TensorView.ofHost(table, DType.INT32, newTokens.length, COLUMNS),
            new SlotMapping(TensorView.ofHost(slots, DType.INT64, queryStartLoc[newTokens.length])))
        .images(images())
        .build();
  }

  /** Sequence 3 has no image. */
  private ImageRanges images() {
    int[][] rows = IMAGES.clone();
    rows[0] = names[0] == 0 ? rows[0] : new int[0];
    return ImageRanges.of(rows, rows.length);
  }

  /** One layer of a step; returns how far it is from the reference. */
  private double attend(GroupStep<?> step, int layer) {
    CommonAttentionMetadata batch = step.batch();
    Numbers numbers = new Numbers(names, layer, LAYER.headSize());
    try (Arena arena = Arena.ofConfined()) {
      TensorView q = Numbers.empty(arena, batch.tokens(), LAYER.numHeads(), LAYER.headSize());
      TensorView k = Numbers.empty(arena, batch.tokens(), LAYER.numKvHeads(), LAYER.headSize());
      TensorView v = Numbers.empty(arena, batch.tokens(), LAYER.numKvHeads(), LAYER.headSizeV());
      TensorView out = Numbers.empty(arena, batch.tokens(), LAYER.numHeads(), LAYER.headSizeV());
      for (int row = 0; row < batch.live(); row++) {
        int first = batch.queryStart(row);
        int end = first + batch.queryLen(row);
        numbers.fill(q.rows(first, end), Numbers.Kind.QUERY, row, batch.firstPosition(row));
        numbers.fill(k.rows(first, end), Numbers.Kind.KEY, row, batch.firstPosition(row));
        numbers.fill(v.rows(first, end), Numbers.Kind.VALUE, row, batch.firstPosition(row));
      }
      step.writeKv(layer, new KvInput.Dense(k, v), caches.get(layer));
      step.forward(layer, q, caches.get(layer), AttentionOutput.of(out));
      return Agreement.of(
              ReferenceAttention.of(LAYER).all(q, numbers, batch), AttentionOutput.of(out))
          .error();
    }
  }

  private static String route(AttentionMetadata metadata) {
    return metadata instanceof CompositeMetadata<?, ?> composite ? composite.route().label() : "-";
  }
}

package bifocal.core;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.KvContract;
import bifocal.core.batch.CacheBounds;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.DecodeFirstOrder;
import bifocal.core.batch.DecodePrefillSplit;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.BlockTable;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCachePool;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.cache.PageTable;
import bifocal.core.cache.SequenceKeys;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.merge.PartialAttention;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.RouteReason;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceRegion;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.Random;
import java.util.SplittableRandom;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

/** Whatever a host hands in, the answer is a result or a typed refusal. */
class PublicDoorsTest {
  /** Minutes with {@code -Pfull}, and as long as {@code -Dbifocal.fuzz.seconds} says. */
  private static final long SECONDS =
      Long.getLong("bifocal.fuzz.seconds", Boolean.getBoolean("bifocal.full") ? 300 : 8);

  private static final int LARGEST_MEMORY = 1 << 16;
  private static final int[] EDGES = {
    0,
    1,
    -1,
    2,
    3,
    7,
    8,
    16,
    24,
    48,
    64,
    127,
    256,
    1 << 15,
    1 << 20,
    1 << 30,
    Integer.MAX_VALUE,
    Integer.MAX_VALUE - 1,
    Integer.MIN_VALUE
  };

  private static final Vector<Consumer<Numbers>> DOORS =
      Vector.of(
          PublicDoorsTest::tensor,
          PublicDoorsTest::images,
          PublicDoorsTest::batch,
          PublicDoorsTest::batch,
          PublicDoorsTest::batch,
          PublicDoorsTest::order,
          PublicDoorsTest::blockSizes,
          PublicDoorsTest::headSizes,
          PublicDoorsTest::layer,
          PublicDoorsTest::scales,
          PublicDoorsTest::cacheView,
          PublicDoorsTest::pool,
          PublicDoorsTest::prefixes,
          PublicDoorsTest::pages,
          PublicDoorsTest::workspace,
          PublicDoorsTest::contract,
          PublicDoorsTest::merge,
          PublicDoorsTest::routes,
          PublicDoorsTest::names);

  @Test
  void rubbishIsRefusedWithATypedErrorOrTaken() {
    long seed = Long.getLong("bifocal.seed", new Random().nextLong());
    System.out.println("public doors: " + SECONDS + " s with seed " + seed);
    Numbers numbers = new Numbers(new SplittableRandom(seed));
    long end = System.nanoTime() + SECONDS * 1_000_000_000L;
    int[] taken = new int[DOORS.size()];
    int[] refused = new int[DOORS.size()];
    while (System.nanoTime() < end) {
      int door = numbers.below(DOORS.size());
      try {
        DOORS.get(door).accept(numbers);
        taken[door]++;
      } catch (BifocalException e) {
        refused[door]++;
      } catch (RuntimeException | OutOfMemoryError | StackOverflowError e) {
        throw new AssertionError(
            "door %d after %s calls with seed %d".formatted(door, Arrays.toString(taken), seed), e);
      }
    }
    assertThat(Arrays.stream(taken).sum()).as("calls taken, seed %d", seed).isGreaterThan(50);
    assertThat(Arrays.stream(refused).sum()).as("calls refused, seed %d", seed).isGreaterThan(50);
  }

  private static void tensor(Numbers n) {
    TensorView view = n.view(n.pick(DType.values()));
    n.one(
        view::elements,
        view::contiguous,
        () -> view.rows(n.number(0, 3), n.number(0, 6)),
        () -> view.require("tensor", DType.FP32, Device.HOST, n.number(-1, 3), -1));
  }

  private static void images(Numbers n) {
    ImageRanges images = n.images();
    images.isEmpty();
  }

  private static void batch(Numbers n) {
    CommonAttentionMetadata batch = n.batch();
    batch.withoutImages();
    new DecodeConsumer(batch).look(n);
  }

  /** Everything that reads a batch which was accepted. */
  private record DecodeConsumer(CommonAttentionMetadata batch) {
    private void look(Numbers n) {
      for (GraphSupport support : GraphSupport.values()) {
        support.covers(batch);
      }
      switch (n.below(5)) {
        case 0 ->
            DecodePrefillSplit.of(
                batch, new DecodePrefillSplit.Rule(n.number(), n.flag(), n.flag()));
        case 1 -> batch.requireWholeImages(AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE));
        case 2 -> CacheBounds.of(batch, 1 + n.below(64)).requireInside(n.number(), 16);
        case 3 -> {
          CommonAttentionMetadata.Cut cut = batch.cut(n.below(7) - 1);
          for (int i = n.below(4); i > 0; i--) {
            cut.request(n.number(-1, 6));
          }
          cut.run(n.number(-1, 4), n.number(), n.number(), n.number());
          cut.withImages().withoutImages();
        }
        default -> {
          CommonAttentionMetadata.Cut cut = batch.cut(batch.live());
          for (int r = 0; r < batch.live(); r++) {
            cut.request(r);
          }
          cut.withImages();
        }
      }
    }
  }

  private static void order(Numbers n) {
    DecodeFirstOrder order =
        DecodeFirstOrder.of(
            Vector.fill(
                n.below(4), () -> new DecodeFirstOrder.Wish("group", n.number(), n.flag())));
    int requests = n.number(-1, 12);
    order.arrange(
        n.numbers(n.below(14)),
        n.numbers(n.below(14)),
        n.numbers(n.below(14)),
        requests,
        new int[n.below(14)]);
  }

  private static void blockSizes(Numbers n) {
    BlockSizes sizes = n.blockSizes().intersect(n.blockSizes().union(n.blockSizes()));
    sizes.accepts(n.number());
    sizes.kernelBlockFor(n.number());
    sizes.preferred(n.number());
  }

  private static void headSizes(Numbers n) {
    HeadSizes sizes =
        HeadSizes.multiplesOf(n.number(), n.number(), n.number())
            .intersect(HeadSizes.multiplesOf(n.number(), n.number(), n.number()))
            .union(HeadSizes.exactly(n.number()));
    sizes.accepts(n.number());
  }

  private static void layer(Numbers n) {
    n.layer().withSoftcap(n.fraction()).withScale(n.fraction());
    new AttentionMask(
        n.flag(),
        Option.some(n.number()),
        n.pick(ImageMask.values()),
        Option.when(n.flag(), n::number));
    new BatchLimits(n.number(), n.number(), n.number());
  }

  private static void scales(Numbers n) {
    new KvScales.PerTensor((float) n.fraction(), (float) n.fraction()).isOne();
    new KvScales.PerHead(new float[n.below(3)], new float[n.below(3)]).isOne();
  }

  private static void cacheView(Numbers n) {
    KvCacheSpec spec = n.cacheSpec();
    MemorySegment memory = n.memory();
    KvCacheView view =
        n.flag()
            ? KvCacheView.wrap(memory, spec)
            : KvCacheView.wrap(memory, spec, Device.HOST, n.number(), n.number());
    KvCacheView.TokenAccess tokens = view.tokens(n.layout());
    float[] key = new float[n.number(1, 40) & 63];
    float[] value = new float[n.number(1, 40) & 63];
    n.one(
        () -> view.blockOffset(n.number()),
        () -> tokens.write(n.number(), n.number(0, 2), key, value),
        () -> tokens.readKey(n.number(), n.number(0, 2), key),
        () -> tokens.readValue(n.number(), n.number(0, 2), value));
  }

  private static void pool(Numbers n) {
    Vector<KvCachePool.Group> groups =
        Vector.fill(
            n.below(3),
            () ->
                new KvCachePool.Group(
                    "group" + n.below(2),
                    Vector.fill(n.below(3), () -> "layer" + n.below(3)),
                    n.cacheSpec(),
                    n.number()));
    if (KvCachePool.bytes(groups) > LARGEST_MEMORY) {
      return;
    }
    try (KvCachePool pool = KvCachePool.allocate(groups);
        BlockTable table =
            BlockTable.allocate(pool.group("group0"), 1 + n.below(4), 1 + n.below(200))) {
      for (int i = 0; i < 6; i++) {
        try {
          switch (n.below(4)) {
            case 0 -> table.append(n.number(-1, 5), n.number(-1, 300), n.memory(), n.number());
            case 1 -> table.share(n.number(-1, 5), n.number(-1, 5));
            case 2 -> table.release(n.number(-1, 5));
            default -> table.swap(n.number(-1, 5), n.number(-1, 5));
          }
          table.blocksToAppend(n.number(-1, 5), n.number());
          pool.group("group0").lease(n.number()).close();
        } catch (BifocalException e) {
          // The table goes on after a refusal.
          table.tensor();
        }
      }
    }
  }

  /** Rows that begin with what is known, by keys of any group. */
  private static void prefixes(Numbers n) {
    KvCacheSpec spec =
        new KvCacheSpec(n.layout(), KvCacheDtype.FLOAT32, 1 + n.below(4), 1, 2, 2, KvScales.ONE);
    try (KvCachePool pool =
            KvCachePool.allocate(
                Vector.of(
                    new KvCachePool.Group("a", Vector.of("layer"), spec, 2 + n.below(9)),
                    new KvCachePool.Group("b", Vector.of("layer"), spec, 2)));
        BlockTable table = BlockTable.allocate(pool.group("a"), 3, 1 + n.below(40))) {
      SequenceKeys keys = SequenceKeys.of(pool.group(n.below(6) == 0 ? "b" : "a"), "salt");
      for (int i = 0; i < 12; i++) {
        try {
          prefix(n, pool, table, keys);
        } catch (BifocalException e) {
          // The table goes on after a refusal.
          table.tensor();
        }
      }
    }
  }

  private static void prefix(Numbers n, KvCachePool pool, BlockTable table, SequenceKeys keys) {
    int row = n.number(-1, 4);
    n.one(
        () -> keys.append(n.numbers(n.below(20))),
        () -> keys.image(n.number(-1, 40), n.number(-1, 40), "image"),
        () -> keys.key(n.number(-1, 9)).bytes(),
        () -> table.begin(row, keys, n.number(-1, 60)),
        () -> table.append(row, n.number(-1, 20), n.memory(), 0),
        () -> table.publish(row, keys),
        () -> table.release(row),
        () -> table.share(row, n.number(-1, 4)),
        () -> pool.group("a").leaseKnown(keys, n.number(-1, 9)).close(),
        () -> pool.group("a").records(n.number(-1, 12)),
        () -> pool.group("a").forget());
    if (pool.group("a").free() > pool.group("a").numBlocks() - 1) {
      throw new AssertionError("more blocks free than there are");
    }
  }

  private static void pages(Numbers n) {
    new PageTable(16 * n.number(1, 4), n.flag() ? 16 : n.number())
        .expand(
            n.flag() ? n.view(DType.INT32) : n.table(2),
            n.flag() ? n.view(DType.INT32) : n.table(8),
            n.number(-1, 5));
  }

  private static void workspace(Numbers n) {
    WorkspacePlan a = n.plan();
    WorkspacePlan b = n.plan();
    WorkspacePlan both = n.flag() ? WorkspacePlan.overlay("a/", a, "b/", b) : a.max(b);
    WorkspacePlan plan = both.withScratch("more", n.number(0, 500)).withStepBytes(n.number(0, 500));
    try (Workspace workspace = Workspace.wrap(n.memory(), plan, n.number(1, 4));
        Workspace.Step step = workspace.openStep(n.below(2))) {
      n.one(
          () -> step.lease(n.number(0, 100), 1L << n.number(0, 9)),
          () -> step.child("a/").region("region" + n.below(3)).fill((byte) 1),
          () -> step.child("a/").markDirty());
    }
  }

  private static void contract(Numbers n) {
    KvContract.resolve(
        n.party(),
        Vector.fill(n.below(3), n::party),
        n.layer().withKvCacheDtype(n.pick(KvCacheDtype.values())),
        n.flag() ? KvScales.ONE : new KvScales.PerHead(new float[] {1, 2}, new float[] {1, 2}),
        Option.when(n.flag(), n::number));
  }

  private static void merge(Numbers n) {
    PartialAttention part = n.partial();
    part.mergeInto(
        n.flag() ? part : n.partial(),
        n.flag() ? part.out() : n.view(n.pick(DType.values())),
        n.flag() ? part.lse() : n.view(DType.FP32));
  }

  private static void routes(Numbers n) {
    RequestRoutes.builder(n.below(10) - 1)
        .set(n.number(), Child.A, RouteReason.FIXED)
        .set(n.number(-1, 9), Child.B, RouteReason.NEEDS_FUTURE_KEY, n.number(), n.number())
        .build()
        .count(Child.A);
    LoweredRuns.Builder runs = LoweredRuns.builder(n.below(5) - 1);
    for (int i = n.below(6); i > 0; i--) {
      runs.run(n.number(), n.number(), n.number()).endRequest();
    }
    runs.build().total();
  }

  private static void names(Numbers n) {
    char[] letters = new char[n.below(8)];
    for (int i = 0; i < letters.length; i++) {
      letters[i] = (char) n.below(n.flag() ? 128 : 1 << 16);
    }
    BackendName.of(new String(letters));
  }

  /** Numbers at the edges, and things made of them. */
  private static final class Numbers {
    private final SplittableRandom random;

    private Numbers(SplittableRandom random) {
      this.random = random;
    }

    private int below(int bound) {
      return random.nextInt(bound);
    }

    private boolean flag() {
      return random.nextBoolean();
    }

    /** Mostly small, sometimes at an edge. */
    private int number() {
      return switch (below(4)) {
        case 0 -> EDGES[below(EDGES.length)];
        case 1 -> random.nextInt();
        default -> below(40);
      };
    }

    private int number(int from, int to) {
      return below(8) == 0 ? number() : from + below(to - from);
    }

    private int[] numbers(int count) {
      int[] numbers = new int[count];
      Arrays.setAll(numbers, i -> number());
      return numbers;
    }

    private double fraction() {
      return switch (below(6)) {
        case 0 -> Double.NaN;
        case 1 -> Double.POSITIVE_INFINITY;
        case 2 -> -random.nextDouble();
        case 3 -> 0;
        default -> random.nextDouble() * 100;
      };
    }

    private <T> T pick(T[] values) {
      return values[below(values.length)];
    }

    private MemorySegment memory() {
      return MemorySegment.ofArray(new byte[below(LARGEST_MEMORY)]);
    }

    private TensorView view(DType dtype) {
      long[] shape = new long[below(8) == 0 ? below(5) : 2 + below(2)];
      long[] strides = new long[below(8) == 0 ? below(5) : shape.length];
      Arrays.setAll(shape, i -> number(0, 6));
      Arrays.setAll(strides, i -> number(0, 20));
      return flag()
          ? TensorView.ofHost(memory(), dtype, shape)
          : TensorView.of(memory(), dtype, Device.HOST, shape, strides);
    }

    private ImageRanges images() {
      int[][] bounds = new int[below(5)][];
      Arrays.setAll(bounds, i -> numbers(below(6) == 0 ? below(5) : 2 * below(3)));
      return ImageRanges.of(bounds, number(0, 5));
    }

    private CommonAttentionMetadata batch() {
      int requests = below(5);
      int[] starts = new int[below(9) == 0 ? below(6) : requests + 1];
      int[] keys = new int[requests];
      for (int i = 1; i < starts.length; i++) {
        starts[i] = below(9) == 0 ? number() : starts[i - 1] + below(9);
      }
      for (int i = 0; i < requests; i++) {
        keys[i] = below(9) == 0 ? number() : 9 + below(90);
      }
      CommonAttentionMetadata.Builder builder =
          CommonAttentionMetadata.builder(
              starts,
              keys,
              below(9) == 0
                  ? view(pick(DType.values()))
                  : TensorView.ofHost(MemorySegment.ofArray(new int[48]), DType.INT32, 6, 8),
              new SlotMapping(
                  TensorView.ofHost(MemorySegment.ofArray(new long[40]), DType.INT64, below(41))));
      if (flag()) {
        builder.live(number(0, 6));
      }
      if (flag()) {
        builder.images(images());
      }
      if (flag()) {
        builder.prefilling(new boolean[below(6)]);
      }
      return (below(4) == 0 ? builder.independentKeys() : builder).build();
    }

    private TensorView table(int columns) {
      return TensorView.ofHost(
          MemorySegment.ofArray(new int[6 * columns]), DType.INT32, 6, columns);
    }

    private BlockSizes blockSizes() {
      return switch (below(4)) {
        case 0 -> BlockSizes.NONE;
        case 1 -> BlockSizes.exactly(number(), number());
        default -> BlockSizes.multiplesOf(number());
      };
    }

    private KvLayout layout() {
      return flag() ? KvLayouts.NHD : KvLayouts.HND;
    }

    private KvCacheSpec cacheSpec() {
      return new KvCacheSpec(
          layout(),
          flag() ? KvCacheDtype.BFLOAT16 : pick(KvCacheDtype.values()),
          number(1, 20),
          number(1, 3),
          number(1, 20),
          number(1, 20),
          below(3) == 0
              ? new KvScales.PerHead(new float[] {1, 2}, new float[] {1, 2})
              : KvScales.ONE);
    }

    private AttentionLayerSpec.Dense layer() {
      return AttentionLayerSpec.Dense.decoder(
          number(1, 9), number(1, 3), number(), pick(DType.values()), AttentionMask.CAUSAL);
    }

    private WorkspacePlan plan() {
      WorkspaceRegion[] regions = new WorkspaceRegion[below(3)];
      Arrays.setAll(
          regions,
          i ->
              new WorkspaceRegion(
                  "region" + below(3), number(0, 500), pick(WorkspaceRegion.State.values())));
      return WorkspacePlan.of(
          below(9) == 0 ? Long.MAX_VALUE - below(1000) : number(0, 500), regions);
    }

    private KvContract.Party party() {
      return new KvContract.Party(
          "party",
          FeatureSet.NONE
              .withBlockSizes(blockSizes())
              .withKvCacheDtypes(pick(KvCacheDtype.values()), KvCacheDtype.AUTO)
              .withKvLayouts(layout(), layout()));
    }

    private void one(Runnable... doors) {
      pick(doors).run();
    }

    private PartialAttention partial() {
      if (flag()) {
        return new PartialAttention(
            TensorView.ofHost(memory(), pick(new DType[] {DType.FP32, DType.FP16}), 3, 2, 5),
            TensorView.ofHost(memory(), DType.FP32, 3, 2),
            PartialAttention.LogBase.E,
            new int[below(5)]);
      }
      return new PartialAttention(
          view(pick(new DType[] {DType.FP32, DType.BF16, DType.INT32})),
          view(DType.FP32),
          pick(PartialAttention.LogBase.values()),
          new int[below(9)]);
    }
  }
}

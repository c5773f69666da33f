package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.conformance.BatchPlan;
import bifocal.conformance.RandomBatches;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.Route;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.reference.RequestMask;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/**
 * What the kernels compute from a tile list, cell by cell, against the mask of the layer: every
 * query is in exactly one tile, and it sees the keys of the mask and no others.
 */
class TilesEqualMaskTest {
  private static final int BATCHES = 600;

  @ParameterizedTest
  @EnumSource(ImageMask.class)
  void intervalsGiveEveryCellOfTheMask(ImageMask mode) {
    long seed = 11_000L + mode.ordinal();
    Random random = new Random(seed);
    RandomBatches batches = new RandomBatches(seed, 5, 70);
    for (int i = 0; i < BATCHES; i++) {
      BatchPlan plan = mode == ImageMask.NONE ? batches.next() : batches.nextWithImages();
      AttentionMask mask = mask(random, mode, true);
      check("seed " + seed + ", batch " + i + ", " + plan, random, plan, mask, mask, true);
    }
  }

  @ParameterizedTest
  @EnumSource(
      value = ImageMask.class,
      names = {"NONE"})
  void windowsGiveEveryCellOfTheMask(ImageMask mode) {
    long seed = 12_000L;
    Random random = new Random(seed);
    RandomBatches batches = new RandomBatches(seed, 5, 70);
    for (int i = 0; i < BATCHES; i++) {
      BatchPlan plan = batches.next();
      BatchPlan maybe = random.nextInt(4) == 0 ? plan.withIndependentKeys() : plan;
      AttentionMask mask = mask(random, mode, false);
      check("seed " + seed + ", batch " + i + ", " + maybe, random, maybe, mask, mask, false);
    }
  }

  /** The images' own mask, computed by a child that knows windows alone. */
  @ParameterizedTest
  @EnumSource(
      value = ImageMask.class,
      names = {"OVERRIDE", "CLAMP_PAST", "CLAMP_BOTH"})
  void loweredRunsGiveEveryCellOfTheMask(ImageMask mode) {
    long seed = 13_000L + mode.ordinal();
    Random random = new Random(seed);
    RandomBatches batches = new RandomBatches(seed, 5, 70);
    int lowered = 0;
    for (int i = 0; i < BATCHES; i++) {
      BatchPlan plan = batches.nextWithImages();
      AttentionMask mask = mask(random, mode, false);
      CommonAttentionMetadata batch = describe(plan);
      Route route =
          new MMPrefixAttentionRouting(true, Lowering.BOTH_WINDOWS)
              .route(LayerGroup.of("g", layer(mask)), batch);
      if (route instanceof Route.Lowered all) {
        lowered++;
        AttentionMask seen = new AttentionMask(true, mask.window(), ImageMask.NONE, Option.none());
        String which = "seed " + seed + ", batch " + i + ", " + mask + ", " + plan;
        new Cells(which, random, batch, mask).require(cut(batch, all.runs()), seen, false);
      }
    }
    assertThat(lowered).as("lowered batches").isGreaterThan(BATCHES / 20);
  }

  private static void check(
      String which,
      Random random,
      BatchPlan plan,
      AttentionMask mask,
      AttentionMask seen,
      boolean general) {
    CommonAttentionMetadata batch = describe(plan);
    new Cells(which + ", " + mask, random, batch, mask).require(batch, seen, general);
  }

  private static AttentionMask mask(Random random, ImageMask mode, boolean chunks) {
    boolean causal = mode != ImageMask.NONE || random.nextBoolean();
    Option<Integer> window =
        random.nextInt(3) == 0 ? Option.none() : Option.some(random.nextInt(1, 40));
    Option<Integer> chunk =
        chunks && random.nextInt(4) == 0 ? Option.some(random.nextInt(1, 30)) : Option.none();
    return new AttentionMask(causal, window, mode, mode == ImageMask.NONE ? chunk : Option.none());
  }

  private static AttentionLayerSpec layer(AttentionMask mask) {
    return AttentionLayerSpec.Dense.decoder(2, 1, 64, DType.BF16, mask);
  }

  private static CommonAttentionMetadata cut(CommonAttentionMetadata batch, LoweredRuns runs) {
    CommonAttentionMetadata.Cut cut = batch.cut(batch.live() + runs.total());
    for (int r = 0; r < batch.live(); r++) {
      if (runs.count(r) == 0) {
        cut.request(r);
      }
      for (int i = 0; i < runs.count(r); i++) {
        cut.run(r, runs.first(r, i), runs.last(r, i), runs.rightWindow(r, i));
      }
    }
    return cut.withoutImages();
  }

  private static CommonAttentionMetadata describe(BatchPlan plan) {
    int live = plan.requests().size();
    int[] starts = new int[live + 1];
    int[] seqLens = new int[live];
    int[][] images = new int[live][];
    for (int r = 0; r < live; r++) {
      BatchPlan.Request request = plan.requests().get(r);
      starts[r + 1] = starts[r] + request.queryLen();
      seqLens[r] = request.seqLen();
      images[r] =
          request
              .images()
              .flatMap(image -> Vector.of(image.first(), image.last()))
              .toJavaStream()
              .mapToInt(Integer::intValue)
              .toArray();
    }
    MemorySegment table = Arena.ofAuto().allocate(Math.max(1, live) * 16L * Integer.BYTES, 8);
    MemorySegment slots = Arena.ofAuto().allocate(Math.max(1, starts[live]) * 8L, 8);
    CommonAttentionMetadata.Builder builder =
        CommonAttentionMetadata.builder(
                starts,
                seqLens,
                TensorView.ofHost(table, DType.INT32, live, 16),
                new SlotMapping(TensorView.ofHost(slots, DType.INT64, starts[live])))
            .images(ImageRanges.of(images, live));
    return (plan.independentKeys() ? builder.independentKeys() : builder).build();
  }

  /** Counts how often the tiles compute each cell, and compares with the mask. */
  private record Cells(
      String which, Random random, CommonAttentionMetadata batch, AttentionMask mask) {

    void require(CommonAttentionMetadata seen, AttentionMask windows, boolean general) {
      int rows = batch.tokens();
      int keys = Math.max(1, batch.maxSeqLen());
      int[][] counts = new int[rows][keys];
      int[] tilesOf = new int[rows];
      MemorySegment lows = Arena.ofAuto().allocate(Math.max(1, rows) * 4L, 4);
      MemorySegment highs = Arena.ofAuto().allocate(Math.max(1, rows) * 4L, 4);
      KeyCursor cursor =
          general
              ? new IntervalCursor(seen, windows, lows, highs)
              : new WindowCursor(seen, windows);
      int decodeTokens = random.nextInt(1, 9);
      int prefillTokens = random.nextInt(8, 33);
      StepTiles tiles = StepTiles.of(seen, cursor, prefillTokens, decodeTokens);
      for (TileList list : new TileList[] {tiles.prefill(), tiles.decode()}) {
        for (int tile = 0; tile < list.size(); tile++) {
          compute(list, tile, general ? lows : null, general ? highs : null, counts, tilesOf);
        }
      }
      for (int r = 0; r < batch.live(); r++) {
        RequestMask wanted = RequestMask.of(batch, r, mask);
        for (int i = 0; i < batch.queryLen(r); i++) {
          int row = batch.queryStart(r) + i;
          assertThat(tilesOf[row]).as("%s: tiles of row %d", which, row).isEqualTo(1);
          for (int key = 0; key < keys; key++) {
            int position = batch.firstPosition(r) + i;
            assertThat(counts[row][key])
                .as("%s: row %d, position %d, key %d", which, row, position, key)
                .isEqualTo(wanted.sees(position, key) ? 1 : 0);
          }
        }
      }
    }

    /** As the kernels do. */
    private void compute(
        TileList list,
        int tile,
        @Nullable MemorySegment lows,
        @Nullable MemorySegment highs,
        int[][] counts,
        int[] tilesOf) {
      int keys = list.field(tile, 3);
      int left = list.field(tile, 4);
      int right = list.field(tile, 5);
      int most = -1;
      int least = Integer.MAX_VALUE;
      for (int i = 0; i < list.field(tile, 1); i++) {
        int row = list.field(tile, 0) + i;
        int at = list.field(tile, 2) + i;
        int low = left < 0 ? 0 : Math.max(at - left, 0);
        int high = right < 0 ? keys - 1 : Math.min(at + right, keys - 1);
        if (lows != null && highs != null) {
          low = Math.max(lows.getAtIndex(ValueLayout.JAVA_INT, row), 0);
          high = Math.min(highs.getAtIndex(ValueLayout.JAVA_INT, row), keys - 1);
        }
        tilesOf[row]++;
        for (int key = low; key <= high; key++) {
          counts[row][key]++;
          least = Math.min(least, key);
          most = Math.max(most, key);
        }
      }
      assertThat(list.visible(tile))
          .as("%s: visible keys of tile %d", which, tile)
          .isEqualTo(most < 0 ? 0 : most - least + 1);
    }
  }
}

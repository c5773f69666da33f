package bifocal.cuda.flashinfer;

import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.conformance.BatchPlan;
import bifocal.conformance.LayerCheck;
import bifocal.conformance.RandomBatches;
import bifocal.core.cache.KvLayouts;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import bifocal.cuda.flashinfer.FlashInferContract.Kind;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * {@code FLASHINFER} and its pairs against the reference: random masks, batches, layouts and places
 * of tables. Stand-ins for the modules run it on the host, a GPU with real ones.
 */
interface FlashInferSuite {
  /** A device with modules. */
  FlashInferDevice device();

  /** What the modules were compiled for, with a block size and a group that the kernels have. */
  List<Shape> shapes();

  /** Random layers for each shape and kind. */
  int repetitions();

  /** Decides everything random; each test's name says its own. */
  long seed();

  /** Tokens of the longest sequences. */
  int longest();

  /**
   * A shape of layers.
   *
   * @param group query heads of a KV head
   * @param pair whether kernels of {@code TRITON_ATTN} have it too
   * @param cap whether scores are capped
   */
  record Shape(
      DType dtype,
      int headSize,
      int group,
      int blockSize,
      boolean windows,
      boolean pair,
      boolean cap) {
    /** Of bf16, and scores without a cap. */
    Shape(int headSize, int group, int blockSize, boolean windows, boolean pair) {
      this(DType.BF16, headSize, group, blockSize, windows, pair, false);
    }

    ModuleKey.Xqa xqa(AttentionMask mask) {
      boolean window = mask.window().isDefined();
      return new ModuleKey.Xqa(dtype, headSize, blockSize, group, window);
    }

    Dense layer(AttentionMask mask, int kvHeads) {
      Dense layer = Dense.decoder(kvHeads * group, kvHeads, headSize, dtype, mask);
      return cap ? layer.withSoftcap(2.0) : layer;
    }
  }

  @TestFactory
  default Stream<DynamicTest> randomLayersAgreeWithTheReference() {
    List<DynamicTest> tests = new ArrayList<>();
    for (Kind kind : Kind.values()) {
      for (Shape shape : shapes()) {
        for (int i = 0; i < repetitions() && (shape.pair() || !kind.images()); i++) {
          long own = seed() + 31L * tests.size();
          tests.add(
              dynamicTest(kind + " " + shape + ", seed " + own, () -> random(kind, shape, own)));
        }
      }
    }
    return tests.stream();
  }

  private void random(Kind kind, Shape shape, long seed) {
    Random random = new Random(seed);
    Dense layer = shape.layer(mask(kind, shape, random), random.nextInt(1, 4));
    RandomBatches batches = new RandomBatches(seed, 6, 150);
    BatchPlan[] plans = new BatchPlan[3];
    for (int i = 0; i < plans.length; i++) {
      plans[i] = layer.mask().seesImages() ? batches.nextWithImages() : batches.next();
    }
    agrees(kind, layer, shape, random, seed, 160, plans);
  }

  private static AttentionMask mask(Kind kind, Shape shape, Random random) {
    Option<Integer> window =
        !shape.windows() || random.nextInt(3) == 0
            ? Option.none()
            : Option.some(random.nextInt(1, 100));
    ImageMask mode =
        !kind.images()
            ? ImageMask.NONE
            : random.nextBoolean() ? ImageMask.CLAMP_PAST : ImageMask.OVERRIDE;
    boolean causal = kind.images() || window.isDefined() || random.nextInt(4) > 0;
    return new AttentionMask(causal, window, mode, Option.none());
  }

  /** A prompt, a chunk, decodes of one and more tokens, and a request without queries. */
  @TestFactory
  default Stream<DynamicTest> mixedBatchesAgreeWithTheReference() {
    return shapes("mixed", BatchPlan.of(37, 37, 9, 70, 1, 33, 0, 12, 1, 1, 3, 64).padded(2));
  }

  /**
   * Decodes before a prompt, as a host orders them, and decodes alone, with padding and without.
   */
  @TestFactory
  default Stream<DynamicTest> decodesAgreeWithTheReference() {
    return shapes(
        "decodes",
        BatchPlan.of(1, 33, 1, 1, 1, 64, 1, 65, 20, 50),
        BatchPlan.of(1, 33, 1, 1, 1, 64, 1, 65),
        BatchPlan.of(1, 33, 1, 1, 1, 64).padded(2));
  }

  /** Few requests whose keys are divided among programs. */
  @TestFactory
  default Stream<DynamicTest> longDecodesAgreeWithTheReference() {
    return shapes(
        "long decodes",
        BatchPlan.of(1, longest()),
        BatchPlan.of(1, longest(), 1, 3, 1, longest() / 2),
        BatchPlan.of(1, longest() - 1, 40, 40, 1, longest() / 2 + 1));
  }

  private Stream<DynamicTest> shapes(String what, BatchPlan... plans) {
    List<DynamicTest> tests = new ArrayList<>();
    for (Kind kind : List.of(Kind.ALONE, Kind.CORES)) {
      for (Shape shape : shapes()) {
        for (boolean window : new boolean[] {false, true}) {
          long own = seed() + 17L * tests.size();
          if (window && !shape.windows()) {
            continue;
          }
          tests.add(
              dynamicTest(
                  kind + " " + shape + (window ? " window, " : ", ") + what + ", seed " + own,
                  () -> {
                    Random random = new Random(own);
                    AttentionMask mask =
                        window
                            ? AttentionMask.CAUSAL.withWindow(random.nextInt(1, longest()))
                            : AttentionMask.CAUSAL;
                    Dense layer = shape.layer(mask, random.nextInt(1, 3));
                    agrees(kind, layer, shape, random, own, longest(), plans);
                  }));
        }
      }
    }
    return tests.stream();
  }

  private void agrees(
      Kind kind,
      Dense layer,
      Shape shape,
      Random random,
      long seed,
      int tokens,
      BatchPlan... plans) {
    FlashInferContract contract =
        FlashInferContract.of(kind, device())
            .over(random.nextBoolean() ? KvLayouts.NHD : KvLayouts.HND, random.nextInt(3) > 0);
    LayerCheck check =
        LayerCheck.of(contract, layer, seed).withBlockSize(shape.blockSize()).withRoom(8, tokens);
    check.agrees(plans);
    if (!shape.cap() && device().pack().has(shape.xqa(layer.mask()))) {
      check.agreesWithoutLogSumExp(plans);
    }
  }
}

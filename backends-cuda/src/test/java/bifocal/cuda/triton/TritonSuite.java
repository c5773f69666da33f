package bifocal.cuda.triton;

import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.conformance.BatchPlan;
import bifocal.conformance.LayerCheck;
import bifocal.conformance.RandomBatches;
import bifocal.core.cache.KvLayouts;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.cuda.pack.Specialisation.Attention;
import bifocal.cuda.triton.TritonContract.Kind;
import bifocal.reference.Tolerance;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * {@code TRITON_ATTN}, its causal child and their pairs, against the reference: every shape of the
 * pack, random masks, batches, layouts and places of tables. The stand-in for the driver runs it
 * with emulated kernels, a GPU with real ones.
 */
interface TritonSuite {
  /** Logits and sums are fp32 whatever the queries are, so the log-sum-exp has one bound. */
  double LSE_BOUND = 1e-4;

  /** A device with a pack. */
  TritonDevice device();

  /** Random layers for each shape and kind. */
  int repetitions();

  /** Decides everything random; each test's name says its own. */
  long seed();

  /** Tokens of the longest sequences. */
  int longest();

  /** Most shapes of each kind. */
  default int shapes() {
    return Integer.MAX_VALUE;
  }

  @TestFactory
  default Stream<DynamicTest> randomLayersOfEveryShapeAgreeWithTheReference() {
    List<DynamicTest> tests = new ArrayList<>();
    for (Kind kind : PackShapes.kinds()) {
      for (Attention shape : PackShapes.of(device().pack(), kind).take(shapes())) {
        for (int i = 0; i < repetitions(); i++) {
          long own = seed() + 31L * tests.size();
          tests.add(
              dynamicTest(kind + " " + shape + ", seed " + own, () -> random(kind, shape, own)));
        }
      }
    }
    return tests.stream();
  }

  private void random(Kind kind, Attention shape, long seed) {
    Random random = new Random(seed);
    Dense layer = PackShapes.random(shape, kind, random);
    RandomBatches batches = new RandomBatches(seed, 6, 150);
    BatchPlan[] plans = new BatchPlan[3];
    for (int i = 0; i < plans.length; i++) {
      plans[i] = layer.mask().seesImages() ? batches.nextWithImages() : batches.next();
    }
    contract(kind, random).agrees(layer, shape, random, seed, 160, plans);
  }

  /** A prompt, a chunk, decodes of one and more tokens, and a request without queries. */
  @TestFactory
  default Stream<DynamicTest> mixedBatchesAgreeWithTheReference() {
    return shapes("mixed", BatchPlan.of(37, 37, 9, 70, 1, 33, 0, 12, 1, 1, 3, 64).padded(2));
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

  /** Queries before the first key, and requests without any key, see nothing. */
  @TestFactory
  default Stream<DynamicTest> queriesThatSeeNothingAreZero() {
    return shapes(
        "nothing visible", BatchPlan.of(5, 2, 3, 0, 1, 4, 40, 7, 1, 0).withIndependentKeys());
  }

  private Stream<DynamicTest> shapes(String what, BatchPlan... plans) {
    List<DynamicTest> tests = new ArrayList<>();
    for (Kind kind : List.of(Kind.GENERAL, Kind.CAUSAL)) {
      for (Attention shape : PackShapes.of(device().pack(), kind).take(shapes())) {
        long own = seed() + 17L * tests.size();
        tests.add(
            dynamicTest(
                kind + " " + shape + ", " + what + ", seed " + own,
                () -> {
                  Random random = new Random(own);
                  AttentionMask mask =
                      random.nextBoolean()
                          ? AttentionMask.CAUSAL
                          : AttentionMask.CAUSAL.withWindow(random.nextInt(1, longest()));
                  Dense layer =
                      PackShapes.layer(shape, mask, random.nextInt(1, 3))
                          .withSinks(random.nextBoolean());
                  contract(kind, random).agrees(layer, shape, random, own, longest(), plans);
                }));
      }
    }
    return tests.stream();
  }

  private Checked contract(Kind kind, Random random) {
    return new Checked(
        TritonContract.of(kind, device())
            .over(random.nextBoolean() ? KvLayouts.NHD : KvLayouts.HND, random.nextBoolean()));
  }

  private static Tolerance bounds(Dense layer) {
    Tolerance usual = Tolerance.of(layer.dtype());
    return new Tolerance(usual.out(), Math.min(usual.lse(), LSE_BOUND));
  }

  /** A contract and how its layers are checked. */
  record Checked(TritonContract contract) {
    void agrees(
        Dense layer, Attention shape, Random random, long seed, int tokens, BatchPlan... plans) {
      LayerCheck.of(contract, layer, seed)
          .withBlockSize(shape.blockSize())
          .withScales(PackShapes.scales(shape, layer.numKvHeads(), random))
          .withRoom(8, tokens)
          .within(bounds(layer))
          .agrees(plans);
    }
  }
}

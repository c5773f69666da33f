package bifocal.cuda.flashattention;

import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.conformance.BatchPlan;
import bifocal.conformance.LayerCheck;
import bifocal.conformance.RandomBatches;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.cache.KvLayouts;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.cuda.flashattention.FlashAttentionContract.Kind;
import bifocal.cuda.triton.AlternatingSteps;
import bifocal.cuda.triton.TritonRun;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * {@code FLASH_ATTN} and its pairs against the reference: random masks, batches, layouts and places
 * of tables. Stand-ins for the forwards run it on the host, a GPU with real ones.
 */
interface FlashAttentionSuite {
  /** A device with forwards, causal ones and ones that take bounds. */
  ForwardDevice device();

  /** What the forwards were compiled for. */
  List<ForwardKey> shapes();

  /** Random layers for each shape and kind. */
  int repetitions();

  /** Decides everything random; each test's name says its own. */
  long seed();

  /** Tokens of the longest sequences. */
  int longest();

  /** What happens to a test of a layer that a backend cannot run here. */
  void cannotRun(String why);

  @TestFactory
  default Stream<DynamicTest> randomLayersAgreeWithTheReference() {
    List<DynamicTest> tests = new ArrayList<>();
    for (Kind kind : Kind.values()) {
      for (ForwardKey shape : shapes()) {
        for (int i = 0; i < repetitions(); i++) {
          long own = seed() + 31L * tests.size();
          tests.add(
              dynamicTest(
                  kind + " " + shape.label() + ", seed " + own, () -> random(kind, shape, own)));
        }
      }
    }
    return tests.stream();
  }

  /** Steps of {@link #textAndImagesAlternateWithoutATrace}. */
  default int alternatingSteps() {
    return 30;
  }

  @TestFactory
  default Stream<DynamicTest> textAndImagesAlternateWithoutATrace() {
    return lowered(run -> AlternatingSteps.leaveNoTrace(run, true, alternatingSteps()));
  }

  /** A stand-in for the driver does not record what forwards launch, so only a GPU replays. */
  default boolean replays() {
    return true;
  }

  @TestFactory
  default Stream<DynamicTest> recordedStepsWithImagesAreReplayedAsTheyRan() {
    return replays() ? lowered(AlternatingSteps::replaysImages) : Stream.empty();
  }

  private Stream<DynamicTest> lowered(Consumer<TritonRun<?>> test) {
    List<DynamicTest> tests = new ArrayList<>();
    for (ForwardKey shape : shapes()) {
      for (boolean window : new boolean[] {false, true}) {
        tests.add(
            dynamicTest(
                shape.label() + (window ? ", window" : ""),
                () -> test.accept(pair(shape, window))));
      }
    }
    return tests.stream();
  }

  private TritonRun<?> pair(ForwardKey shape, boolean window) {
    AttentionMask mask = AttentionMask.CAUSAL.withImages(ImageMask.CLAMP_PAST);
    Dense layer = layer(shape, window ? mask.withWindow(100) : mask, 2);
    AttentionBackend<?> backend = FlashAttentionContract.backend(Kind.LOWERED, device());
    FlashAttentionContract.missing(backend, device(), layer, shape.pageSize())
        .forEach(this::cannotRun);
    return TritonRun.over(
        backend,
        device().context(),
        layer,
        KvLayouts.NHD,
        shape.pageSize(),
        1 + 4 * Math.ceilDiv(TritonRun.LONGEST, shape.pageSize()));
  }

  private void random(Kind kind, ForwardKey shape, long seed) {
    Random random = new Random(seed);
    Dense layer = layer(shape, mask(kind, random), random.nextInt(1, 4));
    RandomBatches batches = new RandomBatches(seed, 6, 150);
    BatchPlan[] plans = new BatchPlan[3];
    for (int i = 0; i < plans.length; i++) {
      plans[i] = layer.mask().seesImages() ? batches.nextWithImages() : batches.next();
    }
    agrees(kind, layer, shape, random, seed, 160, plans);
  }

  private static Dense layer(ForwardKey shape, AttentionMask mask, int kvHeads) {
    return Dense.decoder(kvHeads * shape.group(), kvHeads, shape.headSize(), shape.dtype(), mask);
  }

  private static AttentionMask mask(Kind kind, Random random) {
    Option<Integer> window =
        random.nextInt(3) == 0 ? Option.none() : Option.some(random.nextInt(1, 100));
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
    return alone("mixed", BatchPlan.of(37, 37, 9, 70, 1, 33, 0, 12, 1, 1, 3, 64).padded(2));
  }

  @TestFactory
  default Stream<DynamicTest> decodesAgreeWithTheReference() {
    return alone(
        "decodes",
        BatchPlan.of(1, 33, 1, 1, 1, 64, 1, 65, 20, 50),
        BatchPlan.of(1, 33, 1, 1, 1, 64, 1, 65),
        BatchPlan.of(1, 33, 1, 1, 1, 64).padded(2));
  }

  @TestFactory
  default Stream<DynamicTest> longSequencesAgreeWithTheReference() {
    return alone(
        "long",
        BatchPlan.of(1, longest()),
        BatchPlan.of(longest() / 2, longest(), 1, 3),
        BatchPlan.of(1, longest() - 1, 40, 40, 1, longest() / 2 + 1));
  }

  private Stream<DynamicTest> alone(String what, BatchPlan... plans) {
    List<DynamicTest> tests = new ArrayList<>();
    for (ForwardKey shape : shapes()) {
      for (boolean window : new boolean[] {false, true}) {
        long own = seed() + 17L * tests.size();
        tests.add(
            dynamicTest(
                shape.label() + (window ? ", window, " : ", ") + what + ", seed " + own,
                () -> {
                  Random random = new Random(own);
                  AttentionMask mask =
                      window
                          ? AttentionMask.CAUSAL.withWindow(random.nextInt(1, longest()))
                          : AttentionMask.CAUSAL;
                  Dense layer = layer(shape, mask, random.nextInt(1, 3));
                  agrees(Kind.ALONE, layer, shape, random, own, longest(), plans);
                }));
      }
    }
    return tests.stream();
  }

  private void agrees(
      Kind kind,
      Dense layer,
      ForwardKey shape,
      Random random,
      long seed,
      int tokens,
      BatchPlan... plans) {
    AttentionBackend<?> backend = FlashAttentionContract.backend(kind, device());
    FlashAttentionContract.missing(backend, device(), layer, shape.pageSize())
        .forEach(this::cannotRun);
    FlashAttentionContract contract =
        new FlashAttentionContract(
            backend,
            device(),
            random.nextBoolean() ? KvLayouts.NHD : KvLayouts.HND,
            random.nextInt(3) > 0);
    LayerCheck.of(contract, layer, seed)
        .withBlockSize(shape.pageSize())
        .withRoom(8, tokens)
        .agrees(plans);
  }
}

package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import bifocal.conformance.ValueSource.Kind;
import bifocal.core.backend.Feature;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import bifocal.reference.HostTensor;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.Random;
import java.util.function.IntFunction;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Shapes, types and numbers: whatever is declared agrees with the reference. */
public interface NumbersContract extends BackendContract {
  /** More than kernels read in one piece. */
  int MANY_KEYS = 8_320;

  /** A whole prompt, a chunk, decodes and a request without queries. */
  private static BatchPlan mixed() {
    return BatchPlan.of(37, 37, 9, 70, 1, 33, 0, 12, 1, 1, 3, 64);
  }

  private Declared declared() {
    return new Declared(backend(), profile());
  }

  @TestFactory
  default Stream<DynamicTest> everyDeclaredTypeOfQueries() {
    Seq<Dense> layers = declared().dtypes().map(declared()::plain);
    assertThat(layers).as("declared types of queries").isNotEmpty();
    return Checks.forEach(
        this, layers, layer -> Checks.agrees(this, Setup.of(layer, Seeds.first()), mixed()));
  }

  @TestFactory
  default Stream<DynamicTest> everyDeclaredTypeOfQueriesIntoFp32() {
    return Checks.forEach(
        this,
        declared().dtypes().map(declared()::plain),
        layer ->
            Checks.agrees(this, Setup.of(layer, Seeds.first()).withOutType(DType.FP32), mixed()));
  }

  @TestFactory
  default Stream<DynamicTest> everyDeclaredTypeOfCache() {
    Seq<Dense> layers =
        declared()
            .dtypes()
            .flatMap(
                dtype ->
                    Vector.ofAll(declared().features().kvCacheDtypes())
                        .filter(cache -> cache != KvCacheDtype.AUTO)
                        .filter(cache -> cache.elementType().isDefined())
                        .map(cache -> declared().plain(dtype).withKvCacheDtype(cache)));
    return Checks.forEach(
        this, layers, layer -> Checks.agrees(this, Setup.of(layer, Seeds.first()), mixed()));
  }

  @TestFactory
  default Stream<DynamicTest> scalesOfAQuantisedCache() {
    Seq<Dense> layers =
        Vector.of(KvCacheDtype.FP8_E4M3, KvCacheDtype.FP8_E5M2)
            .map(cache -> declared().plain().withKvCacheDtype(cache));
    return Checks.forEach(
        this,
        declared().has(Feature.KV_SCALES) ? layers : Vector.empty(),
        layer ->
            Checks.agrees(
                this,
                Setup.of(layer, Seeds.first()).withScales(new KvScales.PerTensor(0.037f, 0.21f)),
                mixed()));
  }

  @TestFactory
  default Stream<DynamicTest> everyCommonHeadSize() {
    return Checks.forEach(
        this,
        declared()
            .headSizes()
            .flatMap(
                size ->
                    declared()
                        .dtypes()
                        .map(dtype -> Dense.decoder(2, 1, size, dtype, AttentionMask.CAUSAL))),
        layer ->
            Checks.agrees(
                this, Setup.of(layer, Seeds.first()), BatchPlan.of(19, 35, 1, 18, 20, 20)));
  }

  @TestFactory
  default Stream<DynamicTest> valuesOfAnotherHeadSizeThanKeys() {
    Seq<Integer> sizes = declared().headSizes().take(4);
    return Checks.forEach(
        this,
        sizes.flatMap(
            k ->
                sizes
                    .filter(v -> !v.equals(k))
                    .map(
                        v ->
                            Dense.decoder(4, 2, k, declared().dtypes().head(), AttentionMask.CAUSAL)
                                .withHeadSizeV(v))),
        layer -> Checks.agrees(this, Setup.of(layer, Seeds.first()), BatchPlan.of(19, 35, 1, 18)));
  }

  @TestFactory
  default Stream<DynamicTest> everyGroupOfQueryHeads() {
    int size = declared().headSizes().head();
    return Checks.forEach(
        this,
        Vector.of(1, 3, 5, 6, 7, 8, 12, 64)
            .flatMap(
                group ->
                    declared()
                        .dtypes()
                        .map(
                            dtype ->
                                Dense.decoder(2 * group, 2, size, dtype, AttentionMask.CAUSAL))),
        layer -> Checks.agrees(this, Setup.of(layer, Seeds.first()), BatchPlan.of(7, 21, 1, 34)));
  }

  @TestFactory
  default Stream<DynamicTest> everyTailOfABlock() {
    return declared()
        .blockSizes()
        .filter(size -> size <= 64)
        .map(size -> Checks.test("blocks of " + size, () -> everyTail(size)))
        .toJavaStream();
  }

  private void everyTail(int blockSize) {
    for (DType dtype : declared().dtypes()) {
      Setup setup =
          Setup.of(declared().plain(dtype), Seeds.first())
              .withBlockSize(blockSize)
              .withRoom(blockSize + 1, 2 * blockSize + 1);
      Checks.agrees(
          this,
          setup,
          lengths(blockSize, 0, Integer.MAX_VALUE),
          lengths(blockSize, 0, 1),
          lengths(blockSize, blockSize, 3));
    }
  }

  /** Sequences of {@code longer + 1} to {@code longer + blockSize + 1} tokens. */
  private static BatchPlan lengths(int blockSize, int longer, int mostQueries) {
    int[] lengths = new int[2 * (blockSize + 1)];
    for (int i = 0; i <= blockSize; i++) {
      lengths[2 * i] = Math.min(mostQueries, longer + i + 1);
      lengths[2 * i + 1] = longer + i + 1;
    }
    return BatchPlan.of(lengths);
  }

  @TestFactory
  default Stream<DynamicTest> softcapAlibiAndSinksAloneAndTogether() {
    Seq<Dense> layers =
        declared()
            .dtypes()
            .map(declared()::plain)
            .flatMap(
                plain ->
                    Vector.of(
                        plain.withSoftcap(2),
                        plain.withAlibi(true),
                        plain.withSinks(true),
                        plain.withSoftcap(1.5).withAlibi(true),
                        plain.withSoftcap(1.5).withSinks(true),
                        plain.withAlibi(true).withSinks(true),
                        plain.withSoftcap(1.5).withAlibi(true).withSinks(true),
                        plain.withScale(1.0 / 3)));
    return Checks.forEach(
        this, layers, layer -> Checks.agrees(this, Setup.of(layer, Seeds.first()), mixed()));
  }

  /** Two keys with scaled logits 200 and 100 under a cap of 50 weigh 0.8538 and 0.1462. */
  @Test
  default void softcapIsAppliedToTheNumbersOfTheCall() {
    Dense layer = twoKeys().withSoftcap(50);
    assumeTrue(declared().runs(layer), "a softcap is not declared");
    Setup setup = Setup.of(layer, Seeds.first()).withValues(logits(200, 100));
    try (Rig<?> rig = Rig.open(this, setup)) {
      Outcome outcome = rig.run(BatchPlan.of(1, 2));
      assertThat(outcome.out(firstRow(), 0, 0)).isCloseTo(0.8538f, within(6e-3f));
      outcome.requireRight();
    }
  }

  /** One query, two keys with logit 0 and a sink of its own: the sink takes part in the softmax. */
  @Test
  default void sinkTakesItsShareOfTheSoftmax() {
    Dense layer = twoKeys().withSinks(true);
    assumeTrue(declared().runs(layer), "sinks are not declared");
    Setup setup = Setup.of(layer, Seeds.first()).withValues(logits(0, 0));
    try (Rig<?> rig = Rig.open(this, setup)) {
      Outcome outcome = rig.run(BatchPlan.of(1, 2));
      float sink = HostTensor.over(rig.hostParameters().sinks().get()).at(0);
      double each = 1 / (2 + Math.exp(sink));
      assertThat((double) outcome.out(firstRow(), 0, 0)).isCloseTo(each, within(6e-3));
      outcome.requireRight();
    }
  }

  /**
   * Logits far below zero, and a first tile of keys that the window hides: an ordinary softmax, and
   * no maximum that was never a logit.
   */
  @TestFactory
  default Stream<DynamicTest> veryLowLogitsAreAnOrdinarySoftmax() {
    Seq<Dense> layers =
        declared()
            .dtypes()
            .flatMap(
                dtype -> {
                  Dense plain = declared().plain(dtype).withScale(1);
                  return Vector.of(plain, plain.withMask(AttentionMask.CAUSAL.withWindow(2)));
                });
    return Checks.forEach(this, layers, this::veryLowLogits);
  }

  private void veryLowLogits(Dense layer) {
    float lowest = layer.dtype() == DType.FP16 ? -60_000 : -1e30f;
    for (float level : new float[] {-300, -50_000, lowest}) {
      ValueSource values =
          (kind, sequence, position, head, d) ->
              switch (kind) {
                case QUERY -> d == 0 ? 1 : 0;
                case KEY -> d == 0 ? (position < 128 ? 2 * level / 3 : level) : 0;
                case VALUE -> (position % 2 == 0 ? 1 : 3) + d * 0.125f;
              };
      Setup setup = Setup.of(layer, Seeds.first()).withValues(values);
      Checks.agrees(this, setup, BatchPlan.of(2, 132, 1, 130, 3, 3));
    }
  }

  /**
   * The running maximum is that of visible logits alone: not of later keys, nor of keys behind the
   * window, nor of a tile or a part of the keys in which all is far lower, nor with another sign.
   */
  @TestFactory
  default Stream<DynamicTest> maximaAreThoseOfVisibleLogits() {
    Seq<Dense> layers =
        declared()
            .dtypes()
            .flatMap(
                dtype -> {
                  Dense plain = declared().plain(dtype).withScale(1);
                  return Vector.of(
                      plain,
                      plain.withMask(AttentionMask.CAUSAL.withWindow(2)),
                      plain.withMask(AttentionMask.CAUSAL.withWindow(40)),
                      plain.withScale(-1),
                      plain.withSinks(true),
                      plain.withAlibi(true));
                });
    return Checks.forEach(this, layers, this::maximaOfVisibleLogits);
  }

  private void maximaOfVisibleLogits(Dense layer) {
    float lowest = layer.dtype() == DType.FP16 ? -60_000 : -1e30f;
    float sign = (float) layer.scale();
    // Beside a sink of about 0, far lower logits leave an output that no float can hold.
    float low = layer.sinks() ? -3 : -300;
    Seq<IntFunction<Float>> logits =
        Vector.<IntFunction<Float>>of(
            position -> low + 8 * position,
            position -> -8f * position,
            position -> position < 100 ? lowest : low,
            position -> position < 100 ? low : lowest,
            position -> position % 64 == 63 ? low : lowest,
            position -> -lowest);
    for (IntFunction<Float> logit : logits) {
      ValueSource values =
          (kind, sequence, position, head, d) ->
              switch (kind) {
                case QUERY -> d == 0 ? 1 : 0;
                case KEY -> d == 0 ? sign * logit.apply(position) : 0;
                case VALUE -> (position % 2 == 0 ? 1 : 3) + d * 0.125f;
              };
      Setup setup = Setup.of(layer, Seeds.first()).withValues(values).withRoom(4, 200);
      Checks.agrees(
          this,
          setup,
          BatchPlan.of(70, 70, 1, 193, 3, 130, 1, 64),
          BatchPlan.of(1, 71, 1, 194, 1, 131, 1, 65));
    }
  }

  /** So many keys that a decode may be divided over them, in parts with maxima far apart. */
  @TestFactory
  default Stream<DynamicTest> maximaOfPartsOfTheKeysMayLieFarApart() {
    return Checks.forEach(
        this,
        declared().dtypes().map(declared()::small).map(layer -> layer.withScale(1)),
        layer -> {
          float lowest = layer.dtype() == DType.FP16 ? -60_000 : -1e30f;
          for (boolean first : new boolean[] {false, true}) {
            ValueSource values =
                (kind, sequence, position, head, d) ->
                    switch (kind) {
                      case QUERY -> d == 0 ? 1 : 0;
                      case KEY -> d == 0 ? (position < 4096 == first ? lowest : -300) : 0;
                      case VALUE -> (position % 2 == 0 ? 1 : 3) + d * 0.125f;
                    };
            Setup setup = Setup.of(layer, Seeds.first()).withValues(values).withRoom(1, MANY_KEYS);
            Checks.agrees(this, setup, BatchPlan.of(1, MANY_KEYS));
          }
        });
  }

  @TestFactory
  default Stream<DynamicTest> randomLayersAndBatches() {
    return LongStream.of(Seeds.several(10))
        .mapToObj(seed -> Checks.test("seed " + seed, () -> randomLayersAndBatches(seed)));
  }

  private void randomLayersAndBatches(long seed) {
    Random random = new Random(seed);
    Dense layer = randomLayer(random);
    assumeTrue(declared().runs(layer), () -> "not on this host: " + Checks.name(layer));
    RandomBatches batches = new RandomBatches(seed, 6, 150);
    BatchPlan[] plans = new BatchPlan[3];
    for (int i = 0; i < plans.length; i++) {
      plans[i] = layer.mask().seesImages() ? batches.nextWithImages() : batches.next();
    }
    Checks.agrees(this, Setup.of(layer, seed), plans);
  }

  /** A random layer; what the backend does not run is taken away again. */
  private Dense randomLayer(Random random) {
    Seq<Integer> sizes = declared().headSizes();
    Seq<DType> dtypes = declared().dtypes();
    int kvHeads = random.nextInt(1, 3);
    Dense layer =
        Dense.decoder(
            kvHeads * random.nextInt(1, 9),
            kvHeads,
            sizes.get(random.nextInt(sizes.size())),
            dtypes.get(random.nextInt(dtypes.size())),
            AttentionMask.CAUSAL);
    if (random.nextBoolean()) {
      layer = ifRuns(layer.withMask(layer.mask().withWindow(random.nextInt(1, 100))), layer);
    }
    Seq<ImageMask> modes = declared().imageMasks();
    if (!modes.isEmpty() && random.nextInt(3) > 0) {
      ImageMask mode = modes.get(random.nextInt(modes.size()));
      layer = ifRuns(layer.withMask(layer.mask().withImages(mode)), layer);
    }
    if (random.nextInt(3) == 0) {
      layer = ifRuns(layer.withSoftcap(0.5 + 3 * random.nextDouble()), layer);
    }
    // A slope times a later key gives logits so large that fp32 rounds them past the bound.
    if (random.nextInt(4) == 0 && !layer.mask().seesImages()) {
      layer = ifRuns(layer.withAlibi(true), layer);
    }
    return random.nextInt(3) == 0 ? ifRuns(layer.withSinks(true), layer) : layer;
  }

  private Dense ifRuns(Dense wanted, Dense otherwise) {
    return declared().runs(wanted) ? wanted : otherwise;
  }

  private Dense twoKeys() {
    return declared().plain().withScale(1);
  }

  private int firstRow() {
    return declared().has(Feature.INDIRECT_REQUESTS) ? Rig.UNUSED_ROWS : 0;
  }

  /** Keys whose logits are given; the first value is 1, the others 0. */
  private static ValueSource logits(float... logits) {
    return (kind, sequence, position, head, d) ->
        kind == Kind.QUERY
            ? (d == 0 ? 1 : 0)
            : kind == Kind.KEY ? (d == 0 ? logits[position] : 0) : (position == 0 ? 1 : 0);
  }
}

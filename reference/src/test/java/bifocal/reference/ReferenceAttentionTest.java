package bifocal.reference;

import static bifocal.reference.Batches.floats;
import static bifocal.reference.Batches.shape;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.Arrays;
import org.junit.jupiter.api.Test;

/** Softmax attention on numbers worked out by hand. */
class ReferenceAttentionTest {
  private static final double EXACT = 1e-12;

  /** One head of size 1 and scale 1: q = 1 makes the keys themselves the logits. */
  private static final Dense PLAIN =
      Dense.decoder(1, 1, 1, DType.FP32, AttentionMask.CAUSAL).withScale(1);

  @Test
  void equalLogitsShareEqually() {
    ReferenceRow row = last(PLAIN, LayerParameters.NONE, keys(5, 5), values(1, 3));
    assertThat(row.out()[0]).isCloseTo(2, within(EXACT));
    assertThat(row.lse()).isCloseTo(5 + Math.log(2), within(EXACT));
  }

  @Test
  void weightsFollowTheExponentialOfTheLogits() {
    ReferenceRow row =
        last(PLAIN, LayerParameters.NONE, keys(0, (float) Math.log(3)), values(0, 4));
    assertThat(row.out()[0]).isCloseTo(3, within(1e-6));
    assertThat(row.lse()).isCloseTo(Math.log(4), within(1e-6));
  }

  @Test
  void scaleMultipliesTheProduct() {
    ReferenceRow row =
        last(
            PLAIN.withScale(0.5),
            LayerParameters.NONE,
            keys(0, 2 * (float) Math.log(3)),
            values(0, 4));
    assertThat(row.out()[0]).isCloseTo(3, within(1e-6));
  }

  @Test
  void softcapOfFiftyKeepsTheSmallerOfTwoLargeLogits() {
    ReferenceRow capped =
        last(PLAIN.withSoftcap(50), LayerParameters.NONE, keys(200, 100), values(1, 0));
    assertThat(capped.out()[0]).isCloseTo(0.8538, within(5e-5));
    ReferenceRow uncapped = last(PLAIN, LayerParameters.NONE, keys(200, 100), values(1, 0));
    assertThat(uncapped.out()[0]).isCloseTo(1, within(EXACT));
  }

  @Test
  void alibiMovesLogitsAfterTheCap() {
    Dense layer = PLAIN.withSoftcap(1).withAlibi(true);
    ReferenceRow row = last(layer, alibi(2), keys(1000, 1000), values(1, 0));
    // Both capped to 1; the first key is one position back, so 2 lower.
    double first = Math.exp(-2);
    assertThat(row.out()[0]).isCloseTo(first / (1 + first), within(1e-9));
    assertThat(row.lse()).isCloseTo(1 + Math.log(1 + first), within(1e-9));
  }

  @Test
  void sinkJoinsTheSoftmaxWithoutAValue() {
    ReferenceRow row = last(PLAIN.withSinks(true), sink(0), keys(0, 0), values(1, 1));
    assertThat(row.out()[0]).isCloseTo(2.0 / 3, within(EXACT));
    assertThat(row.lse()).isCloseTo(Math.log(3), within(EXACT));
  }

  @Test
  void sinkIsNeitherScaledNorCapped() {
    Dense layer = PLAIN.withScale(0.001).withSoftcap(1).withSinks(true);
    ReferenceRow row = last(layer, sink(7), keys(0), values(1));
    assertThat(row.lse()).isCloseTo(Math.log(1 + Math.exp(7)), within(1e-9));
  }

  @Test
  void noVisibleKeyGivesZeroAndNegativeInfinity() {
    ReferenceRow row = withoutKeys(PLAIN, LayerParameters.NONE);
    assertThat(row.out()).containsExactly(0);
    assertThat(row.lse()).isEqualTo(Double.NEGATIVE_INFINITY);
  }

  @Test
  void noVisibleKeyButASinkGivesZeroAndTheSink() {
    ReferenceRow row = withoutKeys(PLAIN.withSinks(true), sink(1.5f));
    assertThat(row.out()).containsExactly(0);
    assertThat(row.lse()).isEqualTo(1.5);
  }

  @Test
  void veryLowLogitsAreAnOrdinarySoftmax() {
    for (float level : new float[] {-300, -245_000, -1e30f}) {
      ReferenceRow row = last(PLAIN, LayerParameters.NONE, keys(level, level), values(1, 3));
      assertThat(row.out()[0]).as("logits of %s", level).isCloseTo(2, within(EXACT));
      assertThat(row.lse()).isCloseTo(level + Math.log(2), within(1e-6));
    }
  }

  @Test
  void maskedTileBeforeLowLogitsChangesNothing() {
    Dense layer = PLAIN.withMask(AttentionMask.CAUSAL.withWindow(2));
    float[] keys = new float[130];
    Arrays.fill(keys, 0, 128, 50);
    Arrays.fill(keys, 128, 130, -300);
    float[] values = new float[130];
    values[128] = 1;
    values[129] = 3;
    ReferenceRow row = last(layer, LayerParameters.NONE, keys(keys), values(values));
    assertThat(row.out()[0]).isCloseTo(2, within(EXACT));
    assertThat(row.lse()).isCloseTo(-300 + Math.log(2), within(EXACT));
  }

  @Test
  void maskedKeysAndValuesAreNotReadIntoTheResult() {
    ReferenceRow row =
        last(
            PLAIN.withMask(AttentionMask.CAUSAL.withWindow(1)),
            LayerParameters.NONE,
            keys(Float.NaN, 0),
            values(Float.NaN, 3));
    assertThat(row.out()[0]).isEqualTo(3);
  }

  @Test
  void queryHeadsOfAGroupShareTheirKvHead() {
    Dense layer = Dense.decoder(6, 2, 1, DType.FP32, AttentionMask.CAUSAL);
    TensorView q = floats(shape(1, 6, 1), 0, 0, 0, 0, 0, 0);
    TensorView k = floats(shape(1, 2, 1), 0, 0);
    TensorView v = floats(shape(1, 2, 1), 10, 20);
    CommonAttentionMetadata batch = Batches.of(1, 1).build();
    Seq<ReferenceRow> rows =
        ReferenceAttention.of(layer, LayerParameters.NONE)
            .all(q, KeyValues.dense(k, v, batch), batch);
    assertThat(rows.map(row -> row.out()[0])).containsExactly(10.0, 10.0, 10.0, 20.0, 20.0, 20.0);
    assertThat(rows.map(row -> row.at().head())).containsExactly(0, 1, 2, 3, 4, 5);
  }

  @Test
  void valuesMayHaveAnotherSizeThanKeys() {
    Dense layer = Dense.decoder(1, 1, 2, DType.FP32, AttentionMask.CAUSAL).withHeadSizeV(3);
    TensorView q = floats(shape(1, 1, 2), 1, 1);
    TensorView k = floats(shape(1, 1, 2), 1, 1);
    TensorView v = floats(shape(1, 1, 3), 4, 5, 6);
    CommonAttentionMetadata batch = Batches.of(1, 1).build();
    Seq<ReferenceRow> rows =
        ReferenceAttention.of(layer, LayerParameters.NONE)
            .all(q, KeyValues.dense(k, v, batch), batch);
    assertThat(rows.head().out()).containsExactly(4, 5, 6);
    assertThat(rows.head().lse()).isCloseTo(Math.sqrt(2), within(1e-9));
  }

  @Test
  void requestsDoNotSeeEachOther() {
    CommonAttentionMetadata batch = Batches.of(1, 2, 1, 1).build();
    TensorView q = floats(shape(2, 1, 1), 1, 1);
    TensorView k = floats(shape(3, 1, 1), 0, 0, 9);
    TensorView v = floats(shape(3, 1, 1), 1, 3, 100);
    Seq<ReferenceRow> rows =
        ReferenceAttention.of(PLAIN, LayerParameters.NONE)
            .all(q, KeyValues.dense(k, v, batch), batch);
    assertThat(rows.map(row -> row.out()[0])).containsExactly(2.0, 100.0);
  }

  @Test
  void chosenPairsEqualTheSamePairsOfAll() {
    Dense layer = Dense.decoder(4, 2, 2, DType.FP32, AttentionMask.CAUSAL);
    CommonAttentionMetadata batch = Batches.of(2, 3, 1, 2).build();
    TensorView q = floats(shape(3, 4, 2), ramp(24));
    TensorView k = floats(shape(5, 2, 2), ramp(20));
    TensorView v = floats(shape(5, 2, 2), ramp(20));
    KeyValues kv = KeyValues.dense(k, v, batch);
    ReferenceAttention attention = ReferenceAttention.of(layer, LayerParameters.NONE);
    Seq<ReferenceRow> all = attention.all(q, kv, batch);
    Seq<QueryHead> pairs =
        Vector.of(
            new QueryHead(2, 3), new QueryHead(0, 0), new QueryHead(0, 1), new QueryHead(1, 2));
    for (ReferenceRow row : attention.chosen(q, kv, batch, pairs)) {
      ReferenceRow same = all.filter(other -> other.at().equals(row.at())).head();
      assertThat(row.out()).containsExactly(same.out());
      assertThat(row.lse()).isEqualTo(same.lse());
    }
    assertThat(attention.chosen(q, kv, batch, pairs).map(ReferenceRow::at))
        .containsExactlyElementsOf(pairs);
  }

  @Test
  void chosenTokenOutsideEveryRequestIsRefused() {
    CommonAttentionMetadata batch = Batches.of(1, 1, 3, 3).live(1).build();
    TensorView q = floats(shape(4, 1, 1), 1, 1, 1, 1);
    TensorView kv = floats(shape(4, 1, 1), 1, 1, 1, 1);
    ReferenceAttention attention = ReferenceAttention.of(PLAIN, LayerParameters.NONE);
    assertThatThrownBy(
            () ->
                attention.chosen(
                    q, KeyValues.dense(kv, kv, batch), batch, Vector.of(new QueryHead(1, 0))))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.SHAPE_MISMATCH));
  }

  @Test
  void layerWithSinksNeedsOnePerHead() {
    Dense layer = Dense.decoder(2, 1, 1, DType.FP32, AttentionMask.CAUSAL).withSinks(true);
    assertThatThrownBy(() -> ReferenceAttention.of(layer, LayerParameters.NONE))
        .hasMessageContaining("sinks");
    assertThatThrownBy(() -> ReferenceAttention.of(layer, sink(1))).hasMessageContaining("[2]");
  }

  private static ReferenceRow last(
      Dense layer, LayerParameters parameters, TensorView k, TensorView v) {
    CommonAttentionMetadata batch = Batches.of(1, (int) k.size(0)).build();
    return ReferenceAttention.of(layer, parameters)
        .all(floats(shape(1, 1, 1), 1), KeyValues.dense(k, v, batch), batch)
        .head();
  }

  private static ReferenceRow withoutKeys(Dense layer, LayerParameters parameters) {
    CommonAttentionMetadata batch = Batches.of(1, 0).independentKeys().build();
    TensorView none = floats(shape(0, 1, 1));
    return ReferenceAttention.of(layer, parameters)
        .all(floats(shape(1, 1, 1), 1), KeyValues.dense(none, none, batch), batch)
        .head();
  }

  private static TensorView keys(float... logits) {
    return floats(shape(logits.length, 1, 1), logits);
  }

  private static TensorView values(float... values) {
    return keys(values);
  }

  private static LayerParameters sink(float logit) {
    return new LayerParameters(Option.some(floats(shape(1), logit)), Option.none());
  }

  private static LayerParameters alibi(float slope) {
    return new LayerParameters(Option.none(), Option.some(floats(shape(1), slope)));
  }

  private static float[] ramp(int length) {
    float[] numbers = new float[length];
    for (int i = 0; i < length; i++) {
      numbers[i] = (i * 7 % 11) / 5f - 1;
    }
    return numbers;
  }
}

package bifocal.reference;

import static bifocal.reference.Batches.floats;
import static bifocal.reference.Batches.shape;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import bifocal.core.backend.AttentionOutput;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import org.junit.jupiter.api.Test;

/** The error measure. */
class AgreementTest {
  /** Two query tokens with norms 3 and 4: the root mean square is 12.5^0.5. */
  private static final Seq<ReferenceRow> ROWS =
      Vector.of(row(0, -2, 3, 0), row(1, Double.NEGATIVE_INFINITY, 0, 4));

  @Test
  void equalOutputsHaveNoError() {
    Agreement same = Agreement.of(ROWS, output(floats(shape(2, 1, 2), 3, 0, 0, 4)));
    assertThat(same.error()).isZero();
    assertThat(same.at().isEmpty()).isTrue();
    assertThat(same.compared()).isEqualTo(2);
  }

  @Test
  void smallVectorsAreMeasuredAgainstTheRootMeanSquare() {
    Agreement off = Agreement.of(ROWS, output(floats(shape(2, 1, 2), 3, 1, 0, 4)));
    assertThat(off.error()).isCloseTo(1 / Math.sqrt(12.5), within(1e-12));
    assertThat(off.at().get()).isEqualTo(new QueryHead(0, 0));
  }

  @Test
  void largeVectorsAreMeasuredAgainstThemselves() {
    Agreement off = Agreement.of(ROWS, output(floats(shape(2, 1, 2), 3, 0, 0, 6)));
    assertThat(off.error()).isCloseTo(0.5, within(1e-12));
    assertThat(off.at().get()).isEqualTo(new QueryHead(1, 0));
  }

  @Test
  void missingNumbersAreInfinitelyWrong() {
    Agreement off = Agreement.of(ROWS, output(floats(shape(2, 1, 2), 3, 0, Float.NaN, 4)));
    assertThat(off.error()).isInfinite();
    assertThat(off.within(Tolerance.of(DType.BF16))).isFalse();
  }

  @Test
  void outputWhereNothingIsVisibleMustBeZero() {
    Seq<ReferenceRow> empty = Vector.of(row(0, Double.NEGATIVE_INFINITY, 0, 0));
    assertThat(Agreement.of(empty, output(floats(shape(1, 1, 2), 0, 0))).error()).isZero();
    assertThat(Agreement.of(empty, output(floats(shape(1, 1, 2), 0, 1e-9f))).error()).isInfinite();
  }

  @Test
  void twoOutputsAreMeasuredAsAnOutputAndTheReferenceAre() {
    AttentionOutput wanted = output(floats(shape(2, 1, 2), 3, 0, 0, 4));
    for (float[] seen : new float[][] {{3, 1, 0, 4}, {3, 0, 0, 6}, {3, 0, 0, 4}}) {
      AttentionOutput other = output(floats(shape(2, 1, 2), seen));
      assertThat(Agreement.between(Batches.of(2, 2).build(), wanted, other))
          .isEqualTo(Agreement.of(ROWS, other));
    }
    AttentionOutput missing = output(floats(shape(2, 1, 2), 3, 0, Float.NaN, 4));
    assertThat(Agreement.between(Batches.of(2, 2).build(), wanted, missing).error()).isInfinite();
  }

  @Test
  void rowsOfNoLiveRequestAreNotCompared() {
    AttentionOutput wanted = output(floats(shape(2, 1, 2), 3, 0, 0, 4));
    AttentionOutput other = output(floats(shape(2, 1, 2), 3, 0, 9, 9));
    Agreement agreement = Agreement.between(Batches.of(1, 1).build(), wanted, other);
    assertThat(agreement.error()).isZero();
    assertThat(agreement.compared()).isEqualTo(1);
  }

  @Test
  void logSumExpIsMeasuredAbsolutelyNearZeroAndRelativelyFarFromIt() {
    assertThat(lseError(-2, -2.5f)).isCloseTo(0.25, within(1e-6));
    assertThat(lseError(0.5, 0.75f)).isCloseTo(0.25, within(1e-6));
    assertThat(lseError(Double.NEGATIVE_INFINITY, Float.NEGATIVE_INFINITY)).isZero();
    assertThat(lseError(Double.NEGATIVE_INFINITY, -1e30f)).isInfinite();
    assertThat(lseError(1, Float.NaN)).isInfinite();
    assertThat(lseError(1, Float.NEGATIVE_INFINITY)).isInfinite();
  }

  @Test
  void worseKeepsTheWorstOfBothAndAddsTheCounts() {
    Agreement small = new Agreement(3, 0.1, Option.some(new QueryHead(0, 0)), 0.4, Option.none());
    Agreement large = new Agreement(4, 0.2, Option.some(new QueryHead(9, 9)), 0.3, Option.none());
    Agreement both = small.worse(large);
    assertThat(both.compared()).isEqualTo(7);
    assertThat(both.error()).isEqualTo(0.2);
    assertThat(both.at().get().queryToken()).isEqualTo(9);
    assertThat(both.lseError()).isEqualTo(0.4);
  }

  private static double lseError(double wanted, float seen) {
    AttentionOutput output =
        new AttentionOutput(floats(shape(1, 1, 2), 1, 0), Option.some(floats(shape(1, 1), seen)));
    return Agreement.of(Vector.of(row(0, wanted, 1, 0)), output).lseError();
  }

  private static AttentionOutput output(TensorView out) {
    return AttentionOutput.of(out);
  }

  private static ReferenceRow row(int token, double lse, double... out) {
    return new ReferenceRow(new QueryHead(token, 0), out, lse);
  }
}

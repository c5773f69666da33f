package bifocal.reference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import org.junit.jupiter.api.Test;

/** Merging attention over parts of the keys. */
class PartialAttentionTest {
  private static final PartialAttention FULL = part(4, 3.0, 0.7);

  @Test
  void emptyPartIsToldByItsKeyCountNotByItsNumbers() {
    for (PartialAttention empty :
        new PartialAttention[] {
          part(0, Double.NaN, Double.NEGATIVE_INFINITY),
          part(0, 9.0, Double.POSITIVE_INFINITY),
          part(0, 1e30, 5.0)
        }) {
      assertThat(empty.merge(FULL)).isSameAs(FULL);
      assertThat(FULL.merge(empty)).isSameAs(FULL);
    }
  }

  @Test
  void twoEmptyPartsGiveZeroAndNegativeInfinity() {
    PartialAttention merged =
        part(0, 8, Double.NEGATIVE_INFINITY).merge(part(0, Double.NaN, Double.NEGATIVE_INFINITY));
    assertThat(merged.out()).containsExactly(0);
    assertThat(merged.lse()).isEqualTo(Double.NEGATIVE_INFINITY);
  }

  @Test
  void partsWeighAsTheirKeysDid() {
    PartialAttention merged = part(1, 0, 0).merge(part(3, 4, Math.log(3)));
    assertThat(merged.out()[0]).isCloseTo(3, within(1e-12));
    assertThat(merged.lse()).isCloseTo(Math.log(4), within(1e-12));
    assertThat(merged.keys()).isEqualTo(4);
  }

  @Test
  void veryLowPartsMergeLikeAnyOther() {
    PartialAttention merged = part(1, 1, -1e30).merge(part(1, 3, -1e30));
    assertThat(merged.out()[0]).isCloseTo(2, within(1e-12));
  }

  private static PartialAttention part(long keys, double out, double lse) {
    return new PartialAttention(keys, new double[] {out}, lse);
  }
}

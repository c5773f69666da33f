package bifocal.core.cache;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.ErrorCode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class BlockSizesTest {
  private static final BlockSizes OF_16 = BlockSizes.multiplesOf(16);

  @Test
  void anyMeetsMultiples() {
    assertThat(BlockSizes.ANY.intersect(OF_16)).isEqualTo(OF_16);
    assertThat(OF_16.intersect(BlockSizes.ANY)).isEqualTo(OF_16);
  }

  @Test
  void multiplesMeetInTheirLeastCommonMultiple() {
    assertThat(OF_16.intersect(BlockSizes.multiplesOf(32))).hasToString("%32");
    assertThat(OF_16.intersect(BlockSizes.multiplesOf(24))).hasToString("%48");
  }

  @Test
  void exactSizesStayWhereTheOtherSideRunsThem() {
    BlockSizes exact = BlockSizes.exactly(16, 32, 64);
    assertThat(exact.intersect(BlockSizes.multiplesOf(32))).hasToString("32, 64");
    assertThat(OF_16.intersect(BlockSizes.exactly(16, 24, 32))).hasToString("16, 32");
    assertThat(exact.intersect(BlockSizes.exactly(64, 16))).hasToString("16, 64");
    assertThat(BlockSizes.exactly(16).intersect(BlockSizes.multiplesOf(32)).isEmpty()).isTrue();
  }

  @Test
  void declaringNothingSupportsNothing() {
    assertThat(BlockSizes.NONE.accepts(16)).isFalse();
    assertThat(BlockSizes.NONE.kernelBlockFor(16)).isEmpty();
    assertThat(BlockSizes.NONE.intersect(BlockSizes.ANY).isEmpty()).isTrue();
    assertThat(BlockSizes.NONE).hasToString("none");
    assertRefused(ErrorCode.KV_INCOMPATIBLE, () -> BlockSizes.NONE.preferred(16));
  }

  @Test
  void aPageRunsAsItIsOrAsTheLargestExactDivisor() {
    BlockSizes common = OF_16.intersect(BlockSizes.exactly(16, 32));
    assertThat(common.kernelBlockFor(256)).containsExactly(32);
    assertThat(common.kernelBlockFor(16)).containsExactly(16);
    assertThat(common.kernelBlockFor(40)).isEmpty();
    assertThat(OF_16.kernelBlockFor(256)).containsExactly(256);
    assertThat(BlockSizes.exactly(64).kernelBlockFor(48)).isEmpty();
  }

  @ParameterizedTest
  @CsvSource({"0", "-16"})
  void aPageThatIsNotPositiveNeverRuns(int page) {
    assertThat(BlockSizes.ANY.accepts(page)).isFalse();
    assertThat(BlockSizes.exactly(16).kernelBlockFor(page)).isEmpty();
  }

  @Test
  void sizesOfNoTokensAreRefused() {
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> BlockSizes.multiplesOf(0));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> BlockSizes.exactly(16, -1));
  }

  @Test
  void multiplesBeyondAnIntMeetNowhere() {
    BlockSizes left = BlockSizes.multiplesOf((1 << 30) - 1);
    assertThat(left.intersect(BlockSizes.multiplesOf(1 << 30)).isEmpty()).isTrue();
  }

  @Test
  void theUnionKeepsTheOrderAndDropsDoubles() {
    assertThat(BlockSizes.exactly(64, 32).union(BlockSizes.exactly(32, 16)))
        .hasToString("64, 32, 16");
  }
}

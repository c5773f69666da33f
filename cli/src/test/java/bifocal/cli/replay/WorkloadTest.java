package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.cli.replay.Workload.Request;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import org.junit.jupiter.api.Test;

final class WorkloadTest {
  private final TraceFile window = TraceFile.shipped().window(128, 16);

  private Workload workload(int imageTokens, long seed) {
    return Workload.of(window, ImageCount.isqrt, imageTokens, 2048, seed);
  }

  @Test
  void tenOfTheSixteenDefaultRequestsHaveImagesAndOneIsTooShortForItsOwn() {
    Workload workload = workload(280, 1);

    assertThat(workload.requests().count(r -> r.imageCount() + r.imagesLeftOut() > 0))
        .isEqualTo(10);
    assertThat(workload.requests().get(3).imagesLeftOut()).isEqualTo(1);
    assertThat(workload.requests().get(6).imageCount()).isEqualTo(3);
  }

  @Test
  void imagesLieInsideTheirPromptAndNeverTouch() {
    for (long seed = 0; seed < 200; seed++) {
      for (Request request : workload(280, seed).requests()) {
        int before = -1;
        for (int i = 0; i < request.imageCount(); i++) {
          assertThat(request.images()[2 * i]).as("seed %d", seed).isGreaterThan(before + 1);
          assertThat(request.images()[2 * i + 1] - request.images()[2 * i]).isEqualTo(279);
          before = request.images()[2 * i + 1];
        }
        assertThat(before).isLessThan(request.promptTokens() - 1);
      }
    }
  }

  @Test
  void placesDependOnTheSeedAlone() {
    assertThat(workload(280, 7).requests().get(6).images())
        .isEqualTo(workload(280, 7).requests().get(6).images())
        .isNotEqualTo(workload(280, 8).requests().get(6).images());
  }

  @Test
  void imagesWithoutRoomAreCounted() {
    Request small = workload(1120, 1).requests().get(0);

    assertThat(small.promptTokens()).isEqualTo(462);
    assertThat(small.imageCount()).isZero();
    assertThat(small.imagesLeftOut()).isEqualTo(1);
  }

  @Test
  void theRawCountIsAsPublished() {
    Workload raw = Workload.of(window, ImageCount.raw, 280, 2048, 1);

    assertThat(raw.requests().get(6).imageCount()).isEqualTo(9);
  }

  @Test
  void anImageAboveTheBudgetIsRefusedWithTheBudgetThatWouldDo() {
    assertThatThrownBy(() -> Workload.of(window, ImageCount.isqrt, 280, 279, 1))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> {
              assertThat(refusal.code()).isEqualTo(ErrorCode.IMAGE_EXCEEDS_BUDGET);
              assertThat(refusal.getMessage()).contains("279").contains("280");
            });
  }
}

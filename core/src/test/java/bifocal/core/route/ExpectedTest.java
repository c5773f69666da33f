package bifocal.core.route;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.route.RequestRoutes.Expected;
import org.junit.jupiter.api.Test;

/** What measurements say of a batch, beside its reasons. */
class ExpectedTest {

  private static RequestRoutes.Builder one(RouteReason reason) {
    return RequestRoutes.builder(1).set(0, Child.B, reason);
  }

  @Test
  void anExpectationIsSaidBehindTheReason() {
    RequestRoutes routes =
        one(RouteReason.NO_IMAGE_QUERY).expecting(new Expected(1_499_600, 3_000_000)).build();

    assertThat(routes.text(0))
        .isEqualTo(
            "no query lies in an image; measured: 1500 µs expected for the batch, 3000 µs otherwise");
    assertThat(routes.expected()).isEqualTo(new Expected(1_499_600, 3_000_000));
  }

  @Test
  void withoutOneNothingIsSaid() {
    assertThat(one(RouteReason.NO_IMAGE_QUERY).build().text(0))
        .isEqualTo("no query lies in an image");
  }

  @Test
  void routesOfOtherExpectationsAreOthers() {
    assertThat(one(RouteReason.MEASURED).expecting(new Expected(1, 2)).build())
        .isNotEqualTo(one(RouteReason.MEASURED).build())
        .isEqualTo(one(RouteReason.MEASURED).expecting(new Expected(1, 2)).build());
  }
}

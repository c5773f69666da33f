package bifocal.core.route;

import static org.assertj.core.api.Assertions.assertThat;

import io.vavr.control.Option;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class RequestRoutesTest {
  private static final RequestRoutes ROUTES =
      RequestRoutes.builder(3)
          .set(0, Child.A, RouteReason.NEEDS_FUTURE_KEY, 7, 8)
          .set(1, Child.B, RouteReason.NO_IMAGE_QUERY)
          .set(2, Child.A, RouteReason.NEEDS_KEY_BEHIND_WINDOW, 12, 0)
          .build();

  @Test
  void eachRequestHasItsChildItsReasonAndItsFirstDifference() {
    assertThat(ROUTES.size()).isEqualTo(3);
    assertThat(ROUTES.child(0)).isEqualTo(Child.A);
    assertThat(ROUTES.reason(0)).isEqualTo(RouteReason.NEEDS_FUTURE_KEY);
    assertThat(ROUTES.query(0)).isEqualTo(7);
    assertThat(ROUTES.key(0)).isEqualTo(8);
    assertThat(ROUTES.query(1)).isEqualTo(RequestRoutes.NONE);
    assertThat(ROUTES.count(Child.A)).isEqualTo(2);
    assertThat(ROUTES.count(Child.B)).isEqualTo(1);
  }

  @Test
  void textsNameTheQueryAndTheKey() {
    assertThat(ROUTES.text(0)).isEqualTo("query 7 needs key 8");
    assertThat(ROUTES.text(2)).isEqualTo("query 12 needs key 0 behind the window");
  }

  @ParameterizedTest
  @EnumSource(RouteReason.class)
  void everyReasonHasAText(RouteReason reason) {
    assertThat(RequestRoutes.all(1, Child.B, reason).text(0)).isNotBlank();
  }

  @Test
  void aBuilderThatGoesOnDoesNotChangeWhatItBuilt() {
    RequestRoutes.Builder builder = RequestRoutes.builder(1);
    builder.set(0, Child.B, RouteReason.NO_IMAGE_QUERY);
    RequestRoutes built = builder.build();
    assertThat(built).isEqualTo(RequestRoutes.all(1, Child.B, RouteReason.NO_IMAGE_QUERY));
    assertThat(built.child(0)).isEqualTo(Child.B);
  }

  @Test
  void routesAreNamedByWhereTheBatchGoes() {
    LoweredRuns runs = LoweredRuns.builder(3).endRequest().endRequest().endRequest().build();
    assertThat(Route.whole(Child.A, ROUTES).label()).isEqualTo("A");
    assertThat(Route.whole(Child.B, ROUTES).label()).isEqualTo("B");
    assertThat(new Route.SplitByRequest(ROUTES, Option.none()).label()).isEqualTo("SPLIT");
    assertThat(new Route.Lowered(ROUTES, runs).label()).isEqualTo("LOWERED");
  }

  @Test
  void runsBelongToTheirRequests() {
    LoweredRuns.Builder builder = LoweredRuns.builder(3).run(0, 4, 0).run(5, 9, -1).endRequest();
    builder.endRequest();
    for (int i = 0; i < 20; i++) {
      builder.run(10 * i, 10 * i + 9, i % 2 == 0 ? 0 : 3);
    }
    LoweredRuns runs = builder.endRequest().build();
    assertThat(runs.count(0)).isEqualTo(2);
    assertThat(runs.count(1)).isZero();
    assertThat(runs.count(2)).isEqualTo(20);
    assertThat(runs.total()).isEqualTo(22);
    assertThat(runs.first(0, 1)).isEqualTo(5);
    assertThat(runs.last(0, 1)).isEqualTo(9);
    assertThat(runs.causal(0, 0)).isTrue();
    assertThat(runs.causal(0, 1)).isFalse();
    assertThat(runs.rightWindow(2, 19)).isEqualTo(3);
    assertThat(runs.last(2, 19)).isEqualTo(199);
  }
}

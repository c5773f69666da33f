package bifocal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.route.RoutingPolicy;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

class PhaseAndPredicateRoutingTest {
  private static final LayerGroup TEXT_LAYERS = Batch.layers(AttentionMask.CAUSAL);

  private static Batch.Request queries(int queryLen, int seqLen) {
    return new Batch.Request(queryLen, seqLen);
  }

  private static Route route(RoutingPolicy policy, Batch.Request... requests) {
    return policy.route(TEXT_LAYERS, Batch.of(requests).metadata());
  }

  @Nested
  class PrefillDecode {
    private final PrefillDecodeRouting splitting = new PrefillDecodeRouting();

    @Test
    void splitsPrefillsFromDecodes() {
      assertThat(route(splitting, queries(1, 10), queries(1, 11), queries(3, 12), queries(0, 13)))
          .isEqualTo(
              new Route.SplitByRequest(
                  RequestRoutes.builder(4)
                      .set(0, Child.B, RouteReason.DECODE)
                      .set(1, Child.B, RouteReason.DECODE)
                      .set(2, Child.A, RouteReason.PREFILL)
                      .set(3, Child.B, RouteReason.EMPTY)
                      .build(),
                  Option.none()));
    }

    @Test
    void oneKindAloneIsNotSplit() {
      assertThat(route(splitting, queries(1, 10), queries(1, 11)).label()).isEqualTo("B");
      assertThat(route(splitting, queries(5, 10), queries(9, 9)).label()).isEqualTo("A");
      assertThat(route(splitting, queries(5, 10), queries(0, 9)).label()).isEqualTo("A");
      assertThat(route(splitting, queries(0, 9)).label()).isEqualTo("B");
    }

    @Test
    void aWholeBatchFollowsItsPrefill() {
      assertThat(route(splitting.wholeBatch(), queries(1, 10), queries(3, 12), queries(0, 4)))
          .isEqualTo(
              new Route.ToChildA(
                  RequestRoutes.builder(3)
                      .set(0, Child.A, RouteReason.FOLLOWS_BATCH)
                      .set(1, Child.A, RouteReason.PREFILL)
                      .set(2, Child.A, RouteReason.EMPTY)
                      .build()));
    }

    @Test
    void aDecodeMayHaveAsManyQueriesAsTheThreshold() {
      PrefillDecodeRouting three = splitting.withThreshold(3);

      assertThat(route(three, queries(3, 12)).label()).isEqualTo("B");
      assertThat(route(three, queries(4, 12)).label()).isEqualTo("A");
    }

    @Test
    void draftedTokensCountAsDecode() {
      PrefillDecodeRouting drafting = splitting.withSpeculativeTokens(2);

      assertThat(drafting.threshold()).isEqualTo(3);
      assertThat(route(drafting, queries(3, 12)).label()).isEqualTo("B");
    }

    @Test
    void theHostsWordOutweighsTheThreshold() {
      CommonAttentionMetadata batch =
          Batch.of(queries(1, 1), queries(1, 11))
              .builder()
              .prefilling(new boolean[] {true, false})
              .build();

      Route route = splitting.route(TEXT_LAYERS, batch);

      assertThat(route.requests().reason(0)).isEqualTo(RouteReason.PREFILL);
      assertThat(route.requests().reason(1)).isEqualTo(RouteReason.DECODE);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, -1, Integer.MIN_VALUE})
    void aThresholdBelowOneIsRefused(int threshold) {
      assertThatThrownBy(() -> splitting.withThreshold(threshold))
          .isInstanceOf(BifocalException.class)
          .hasMessageContaining("at least 1");
    }

    @ParameterizedTest
    @ValueSource(ints = {-1, Integer.MAX_VALUE})
    void impossibleDraftsAreRefused(int drafted) {
      assertThatThrownBy(() -> splitting.withSpeculativeTokens(drafted))
          .isInstanceOf(BifocalException.class);
    }

    @Test
    void graphsHoldWhatCountsAsDecode() {
      assertThat(splitting.graphSupport(TEXT_LAYERS))
          .isEqualTo(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);
      assertThat(splitting.withSpeculativeTokens(1).graphSupport(TEXT_LAYERS))
          .isEqualTo(GraphSupport.UNIFORM_BATCH);
    }

    @Test
    void bothChildrenAreGivenImages() {
      assertThat(splitting.carriesImages(Child.A)).isTrue();
      assertThat(splitting.carriesImages(Child.B)).isTrue();
    }

    @Test
    void optionsKeepEachOther() {
      PrefillDecodeRouting both = splitting.withThreshold(4).wholeBatch().withThreshold(2);

      assertThat(both.splits()).isFalse();
      assertThat(both.threshold()).isEqualTo(2);
      assertThat(splitting.withThreshold(4).wholeBatch().threshold()).isEqualTo(4);
    }
  }

  @Nested
  class Predicate {
    private final PredicateRouting longOnA =
        new PredicateRouting("long", (group, batch, request) -> batch.seqLen(request) > 100);

    @Test
    void sendsToChildAWhatThePredicateHolds() {
      Route route = route(longOnA, queries(1, 101), queries(7, 100), queries(0, 999));

      assertThat(route.label()).isEqualTo("SPLIT");
      assertThat(route.requests().toString()).isEqualTo("[A:PREDICATE, B:PREDICATE, B:EMPTY]");
    }

    @Test
    void aWholeBatchFollows() {
      assertThat(route(longOnA.wholeBatch(), queries(1, 101), queries(7, 100)).requests())
          .hasToString("[A:PREDICATE, A:FOLLOWS_BATCH]");
    }

    @Test
    void asksOncePerRequestWithQueries() {
      List<Integer> asked = new ArrayList<>();
      PredicateRouting counting =
          new PredicateRouting("counting", (group, batch, request) -> asked.add(request));

      route(counting.wholeBatch(), queries(1, 5), queries(0, 5), queries(2, 5));

      assertThat(asked).containsExactly(0, 2);
    }

    @Test
    void bearsTheNameItWasGiven() {
      assertThat(longOnA.name()).isEqualTo("long");
      assertThat(longOnA.wholeBatch().name()).isEqualTo("long");
    }

    @Test
    void isNeverCaptured() {
      assertThat(longOnA.graphSupport(TEXT_LAYERS)).isEqualTo(GraphSupport.NEVER);
    }
  }

  @Nested
  class Fixed {
    @ParameterizedTest
    @EnumSource(Child.class)
    void sendsEverythingToItsChild(Child child) {
      FixedRouting fixed = new FixedRouting(child);

      Route route = route(fixed, queries(1, 5), queries(0, 5));

      assertThat(route.label()).isEqualTo(child.name());
      assertThat(route.requests()).hasToString("[" + child + ":FIXED, " + child + ":EMPTY]");
      assertThat(fixed.captureChild()).isEqualTo(child);
      assertThat(fixed.carriesImages(child)).isTrue();
      assertThat(fixed.graphSupport(TEXT_LAYERS)).isEqualTo(GraphSupport.ALWAYS);
    }

    @Test
    void asksNothingAboutImagesOfTheOtherChild() {
      assertThat(new FixedRouting(Child.A).carriesImages(Child.B)).isFalse();
    }
  }

  /** Whoever decides, half an image cannot be computed. */
  @Test
  void everyPolicyRefusesACutImage() {
    LayerGroup images = Batch.layers(AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE));
    CommonAttentionMetadata cut = Batch.of(5, 5, 3, 8).metadata();

    for (RoutingPolicy policy :
        List.of(
            new MMPrefixAttentionRouting(),
            new PrefillDecodeRouting(),
            new PredicateRouting("none", (group, batch, request) -> false),
            new FixedRouting(Child.B))) {
      assertThatThrownBy(() -> policy.route(images, cut))
          .as(policy.name())
          .isInstanceOf(BifocalException.class)
          .hasMessageContaining("image [3,8]");
    }
  }
}

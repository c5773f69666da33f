package bifocal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import com.sun.management.ThreadMXBean;
import io.vavr.control.Option;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

class MMPrefixAttentionRoutingTest {
  private static final Batch.Request TEXT = new Batch.Request(3, 9);
  private static final Batch.Request IMAGE = new Batch.Request(9, 9, 2, 5);
  private static final Batch.Request LONG_IMAGE = new Batch.Request(9, 9, 1, 7);
  private static final Batch.Request EMPTY = new Batch.Request(0, 9, 2, 5);
  private static final AttentionMask CLAMPED = mask(ImageMask.CLAMP_PAST);
  private static final AttentionMask OVERRIDING = mask(ImageMask.OVERRIDE);

  private final MMPrefixAttentionRouting splitting = new MMPrefixAttentionRouting();
  private final MMPrefixAttentionRouting whole = splitting.wholeBatch();
  private final MMPrefixAttentionRouting lowering = splitting.withLowering(Lowering.LEFT_WINDOW);

  @Test
  void aSplitKeepsRequestsWithoutQueriesOnTheFastChild() {
    Route route = route(splitting, CLAMPED, Batch.of(TEXT, IMAGE, EMPTY));

    assertThat(route)
        .isEqualTo(
            new Route.SplitByRequest(
                RequestRoutes.builder(3)
                    .set(0, Child.B, RouteReason.NO_IMAGE_QUERY)
                    .set(1, Child.A, RouteReason.NEEDS_FUTURE_KEY, 2, 3)
                    .set(2, Child.B, RouteReason.EMPTY)
                    .build(),
                Option.none()));
  }

  @Test
  void aRequestWithoutQueriesKeepsNobodyFromAWholeBatchOnChildA() {
    Route route = route(splitting, CLAMPED, Batch.of(IMAGE, EMPTY));

    assertThat(route.label()).isEqualTo("A");
    assertThat(route.requests().child(1)).isEqualTo(Child.B);
  }

  @Test
  void withoutSplittingOneRequestTakesTheBatchAlong() {
    assertThat(route(whole, CLAMPED, Batch.of(TEXT, IMAGE, EMPTY)))
        .isEqualTo(
            new Route.ToChildA(
                RequestRoutes.builder(3)
                    .set(0, Child.A, RouteReason.FOLLOWS_BATCH)
                    .set(1, Child.A, RouteReason.NEEDS_FUTURE_KEY, 2, 3)
                    .set(2, Child.A, RouteReason.EMPTY)
                    .build()));
  }

  @Test
  void aBatchWithoutQueriesGoesToTheFastChild() {
    assertThat(route(splitting, CLAMPED, Batch.of(EMPTY, EMPTY)).label()).isEqualTo("B");
    assertThat(route(whole, CLAMPED, Batch.of()).label()).isEqualTo("B");
  }

  @Test
  void anImageOfOneTokenIsEqualUnderBothMasks() {
    Route route = route(splitting, OVERRIDING, Batch.of(9, 9, 4, 4));

    assertThat(route.label()).isEqualTo("B");
    assertThat(route.requests().reason(0)).isEqualTo(RouteReason.MASK_EQUAL);
  }

  @Test
  void imagesThatBeginAfterTheLastKeyAreIgnored() {
    assertThat(route(splitting, CLAMPED, Batch.of(9, 9, 9, 20)).requests().reason(0))
        .isEqualTo(RouteReason.NO_IMAGE_QUERY);
  }

  @Test
  void ignoredImagesMustNotOverlapEither() {
    assertThatThrownBy(() -> route(splitting, CLAMPED, Batch.of(9, 9, 20, 30, 25, 40)))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> assertThat(refusal.code()).isEqualTo(ErrorCode.IMAGE_OVERLAP));
  }

  @ParameterizedTest
  @CsvSource({
    "NEGATIVE, -1, 3",
    "NEGATIVE, 3, -1",
    "IMAGE_REVERSED, 5, 4",
    "IMAGE_CUT, 5, 9",
  })
  void imagesThatCannotBeAreRefused(ErrorCode code, int first, int last) {
    assertThatThrownBy(() -> route(splitting, CLAMPED, Batch.of(TEXT, request(first, last))))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> {
              assertThat(refusal.code()).isEqualTo(code);
              assertThat(refusal.request()).containsExactly(1);
            });
  }

  private static Batch.Request request(int first, int last) {
    return new Batch.Request(9, 9, first, last);
  }

  @Test
  void aReversedImageIsFoundBehindACutOne() {
    assertThatThrownBy(() -> route(splitting, CLAMPED, Batch.of(9, 9, 5, 10, 12, 11)))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> assertThat(refusal.code()).isEqualTo(ErrorCode.IMAGE_REVERSED));
  }

  @Test
  void aLayerWithoutImageMaskDoesNotLookAtImages() {
    assertThat(route(splitting, AttentionMask.CAUSAL, Batch.of(9, 9, 5, 3, -1, 20)).label())
        .isEqualTo("B");
  }

  @Test
  void runsAreTheFewestThatGiveTheMask() {
    Route route = route(lowering, CLAMPED, Batch.of(new Batch.Request(20, 24, 2, 5, 8, 8, 10, 12)));

    assertThat(route)
        .isEqualTo(
            new Route.Lowered(
                RequestRoutes.builder(1).set(0, Child.B, RouteReason.LOWERED, 4, 5).build(),
                LoweredRuns.builder(1)
                    .run(4, 5, -1)
                    .run(6, 9, 0)
                    .run(10, 12, -1)
                    .run(13, 23, 0)
                    .endRequest()
                    .build()));
  }

  @Test
  void anImageWithOnlyItsLastTokenScheduledStaysInTheCausalRun() {
    Route route = route(lowering, CLAMPED, Batch.of(new Batch.Request(10, 15, 2, 5, 9, 11)));

    assertThat(((Route.Lowered) route).runs())
        .isEqualTo(
            LoweredRuns.builder(1).run(5, 8, 0).run(9, 11, -1).run(12, 14, 0).endRequest().build());
  }

  @Test
  void touchingImagesAreRunsOfTheirOwn() {
    Route route = route(lowering, CLAMPED, Batch.of(new Batch.Request(6, 6, 3, 5, 0, 2)));

    assertThat(((Route.Lowered) route).runs())
        .isEqualTo(LoweredRuns.builder(1).run(0, 2, -1).run(3, 5, -1).endRequest().build());
  }

  @Test
  void whatCannotBeLoweredIsSplitOff() {
    Route route = route(lowering, OVERRIDING, Batch.of(TEXT, LONG_IMAGE, IMAGE, EMPTY));

    assertThat(route)
        .isEqualTo(
            new Route.SplitByRequest(
                RequestRoutes.builder(4)
                    .set(0, Child.B, RouteReason.NO_IMAGE_QUERY)
                    .set(1, Child.A, RouteReason.NOT_LOWERABLE, 1, 2)
                    .set(2, Child.B, RouteReason.LOWERED, 2, 3)
                    .set(3, Child.B, RouteReason.EMPTY)
                    .build(),
                Option.some(
                    LoweredRuns.builder(4)
                        .endRequest()
                        .endRequest()
                        .run(0, 1, 0)
                        .run(2, 5, -1)
                        .run(6, 8, 0)
                        .endRequest()
                        .endRequest()
                        .build())));
  }

  @Test
  void whatCannotBeLoweredTakesAWholeBatchAlong() {
    Route route = route(lowering.wholeBatch(), OVERRIDING, Batch.of(LONG_IMAGE, IMAGE, TEXT));

    assertThat(route)
        .isEqualTo(
            new Route.ToChildA(
                RequestRoutes.builder(3)
                    .set(0, Child.A, RouteReason.NOT_LOWERABLE, 1, 2)
                    .set(1, Child.A, RouteReason.FOLLOWS_BATCH, 2, 3)
                    .set(2, Child.A, RouteReason.FOLLOWS_BATCH)
                    .build()));
  }

  @Test
  void nothingToLowerIsTheFastChildAsItIs() {
    assertThat(route(lowering, CLAMPED, Batch.of(TEXT, EMPTY)).label()).isEqualTo("B");
  }

  @ParameterizedTest
  @CsvSource({"LEFT_WINDOW, A", "BOTH_WINDOWS, LOWERED"})
  void farFutureKeysUnderBothClampsNeedARightWindow(Lowering how, String label) {
    Route route =
        route(splitting.withLowering(how), mask(ImageMask.CLAMP_BOTH), Batch.of(LONG_IMAGE));

    assertThat(route.label()).isEqualTo(label);
    if (route instanceof Route.Lowered lowered) {
      assertThat(lowered.runs().rightWindow(0, 1)).isEqualTo(3);
    }
  }

  @Test
  void anImageMaskTogetherWithChunksHasNoMeaning() {
    AttentionMask chunked =
        new AttentionMask(true, Option.none(), ImageMask.OVERRIDE, Option.some(8));

    assertThatThrownBy(() -> route(splitting, chunked, Batch.of(IMAGE)))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> assertThat(refusal.code()).isEqualTo(ErrorCode.UNSUPPORTED));
  }

  @Test
  void queriesOfAnotherSequenceLieInNoImage() {
    Route route =
        splitting.route(
            Batch.layers(CLAMPED), Batch.of(9, 9, 2, 5).builder().independentKeys().build());

    assertThat(route.label()).isEqualTo("B");
  }

  @Test
  void onlyChildAIsGivenImages() {
    assertThat(splitting.carriesImages(Child.A)).isTrue();
    assertThat(splitting.carriesImages(Child.B)).isFalse();
    assertThat(splitting.lowers()).isFalse();
    assertThat(lowering.lowers()).isTrue();
    assertThat(lowering.lowersWithRightWindow()).isFalse();
    assertThat(splitting.withLowering(Lowering.BOTH_WINDOWS).lowersWithRightWindow()).isTrue();
  }

  @ParameterizedTest
  @EnumSource(ImageMask.class)
  void graphsHoldSingleQueriesUnlessAnImageOverridesAWindow(ImageMask mode) {
    assertThat(splitting.graphSupport(Batch.layers(mask(mode))))
        .isEqualTo(
            mode == ImageMask.OVERRIDE
                ? GraphSupport.NEVER
                : GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);
    assertThat(splitting.graphSupport(Batch.layers(AttentionMask.CAUSAL.withImages(mode))))
        .isEqualTo(GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE);
  }

  @ParameterizedTest
  @EnumSource(ImageMask.class)
  void noBatchOfSingleQueriesLeavesTheFastChildWhereGraphsHoldIt(ImageMask mode) {
    long seed = 55L + mode.ordinal();
    RandomBatches random = new RandomBatches(seed);
    for (int i = 0; i < 5_000; i++) {
      AttentionMask mask = random.mask(mode);
      Batch.Request request = random.wholeRequest();
      if (request.queryLen() != 1
          || splitting.graphSupport(Batch.layers(mask)) == GraphSupport.NEVER) {
        continue;
      }
      assertThat(route(splitting, mask, Batch.of(request)).label())
          .as("seed %d, request %d, %s, %s", seed, i, mask, request)
          .isEqualTo("B");
    }
  }

  @Test
  void routingLeavesLittleGarbage() {
    Batch.Request[] requests = new Batch.Request[16];
    Arrays.fill(requests, TEXT);
    requests[3] = IMAGE;
    var group = Batch.layers(CLAMPED);
    var batch = Batch.of(requests).metadata();
    var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    int steps = 20_000;
    for (int i = 0; i < steps; i++) {
      assertThat(splitting.route(group, batch)).isNotNull();
    }
    long before = threads.getCurrentThreadAllocatedBytes();
    int split = 0;
    for (int i = 0; i < steps; i++) {
      split += splitting.route(group, batch) instanceof Route.SplitByRequest ? 1 : 0;
    }
    long perStep = (threads.getCurrentThreadAllocatedBytes() - before) / steps;

    assertThat(split).isEqualTo(steps);
    assertThat(perStep).isLessThan(512);
  }

  private static AttentionMask mask(ImageMask mode) {
    return AttentionMask.CAUSAL.withImages(mode).withWindow(4);
  }

  private static Route route(MMPrefixAttentionRouting policy, AttentionMask mask, Batch batch) {
    return policy.route(Batch.layers(mask), batch.metadata());
  }
}

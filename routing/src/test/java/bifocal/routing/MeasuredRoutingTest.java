package bifocal.routing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import bifocal.core.backend.BackendName;
import bifocal.core.bench.Calibration;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.bench.Provenance;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.tensor.DType;
import bifocal.routing.Batch.Request;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Either;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** Measured times between routes that are right anyway. */
class MeasuredRoutingTest {
  private static final BackendName GENERAL = BackendName.of("GENERAL");
  private static final BackendName FAST = BackendName.of("FAST");
  private static final Provenance SOMEWHERE =
      new Provenance("a machine", "a device", "kernels", "25", "1", "c", "now", "a command");
  private static final AttentionMask IMAGES =
      AttentionMask.CAUSAL.withImages(ImageMask.CLAMP_PAST).withWindow(1024);
  private static final Request TEXT = new Request(64, 512);
  private static final Request IMAGE = new Request(300, 300, 10, 265);
  private static final MMPrefixAttentionRouting SPLITTING = new MMPrefixAttentionRouting();
  private static final MMPrefixAttentionRouting LOWERING =
      SPLITTING.withLowering(Lowering.BOTH_WINDOWS);

  /** A table in which a child takes so long for a pair in each phase. */
  private static Calibration table(double[] general, double[] fast) {
    Seq<ChildTime> times = Vector.empty();
    for (Phase phase : Phase.values()) {
      times =
          times
              .append(time(GENERAL, phase, 64, general[phase.ordinal()]))
              .append(time(FAST, phase, 64, fast[phase.ordinal()]));
    }
    return new Calibration(SOMEWHERE, times);
  }

  private static double[] nanos(double decode, double prefill, double image) {
    return new double[] {decode, prefill, image};
  }

  private static ChildTime time(BackendName child, Phase phase, int headSize, double nanos) {
    int queries = phase == Phase.DECODE ? 1 : 64;
    return new ChildTime(child, DType.BF16, headSize, phase, queries, 512, nanos);
  }

  private static Route route(
      MMPrefixAttentionRouting policy, Calibration table, Request... requests) {
    return new MeasuredRouting(policy, table, GENERAL, FAST)
        .route(Batch.layers(IMAGES), Batch.of(requests).metadata());
  }

  private static String children(Route route) {
    StringBuilder line = new StringBuilder(route.label()).append(':');
    for (int r = 0; r < route.requests().size(); r++) {
      line.append(' ').append(route.requests().child(r)).append(' ').append(reason(route, r));
    }
    return line.toString();
  }

  private static RouteReason reason(Route route, int request) {
    return route.requests().reason(request);
  }

  @Test
  void theFastChildKeepsWhatItIsFasterFor() {
    Calibration table = table(nanos(2, 2, 2), nanos(1, 1, 1));

    assertThat(children(route(SPLITTING, table, TEXT, IMAGE)))
        .isEqualTo("SPLIT: B NO_IMAGE_QUERY A NEEDS_FUTURE_KEY");
    assertThat(children(route(LOWERING, table, TEXT, IMAGE)))
        .isEqualTo("LOWERED: B NO_IMAGE_QUERY B LOWERED");
    assertThat(children(route(SPLITTING, table, TEXT))).isEqualTo("B: B NO_IMAGE_QUERY");
  }

  @Test
  void textGoesToTheGeneralChildWhereThatIsFaster() {
    Calibration table = table(nanos(1, 1, 1), nanos(2, 2, 2));

    assertThat(children(route(SPLITTING, table, TEXT))).isEqualTo("A: A MEASURED");
    assertThat(children(route(SPLITTING, table, TEXT, IMAGE)))
        .isEqualTo("A: A MEASURED A NEEDS_FUTURE_KEY");
  }

  @Test
  void imagesStayOnTheGeneralChildWhereLoweringIsSlower() {
    Calibration table = table(nanos(2, 2, 1), nanos(1, 1, 2));
    Route route = route(LOWERING, table, TEXT, IMAGE);

    assertThat(children(route)).isEqualTo("SPLIT: B NO_IMAGE_QUERY A MEASURED");
    assertThat(((Route.SplitByRequest) route).runs()).as("nothing is lowered").isEmpty();
  }

  @Test
  void runsOfRequestsThatStayLoweredAreKept() {
    Calibration table =
        new Calibration(
            SOMEWHERE,
            Vector.of(
                time(GENERAL, Phase.PREFILL, 64, 1),
                time(FAST, Phase.PREFILL, 64, 2),
                time(GENERAL, Phase.IMAGE, 64, 2),
                time(FAST, Phase.IMAGE, 64, 1)));
    Route measured = route(LOWERING, table, TEXT, IMAGE);
    Route.Lowered before =
        (Route.Lowered) LOWERING.route(Batch.layers(IMAGES), Batch.of(TEXT, IMAGE).metadata());

    assertThat(children(measured)).isEqualTo("SPLIT: A MEASURED B LOWERED");
    assertThat(((Route.SplitByRequest) measured).runs()).contains(before.runs());
  }

  @Test
  void whatMustNotBeDividedIsMovedAsAWhole() {
    Calibration table = table(nanos(1, 1, 1), nanos(2, 1, 2));
    MMPrefixAttentionRouting whole = LOWERING.wholeBatch();

    assertThat(children(route(whole, table, TEXT, IMAGE))).isEqualTo("A: A MEASURED A MEASURED");
    assertThat(children(route(SPLITTING.wholeBatch(), table, TEXT, IMAGE)))
        .isEqualTo("A: A FOLLOWS_BATCH A NEEDS_FUTURE_KEY");
  }

  @Test
  void anAdvantageWithinTheMarginMovesNothing() {
    assertThat(children(route(SPLITTING, table(nanos(1, 0.92, 1), nanos(1, 1, 1)), TEXT)))
        .isEqualTo("B: B NO_IMAGE_QUERY");
    assertThat(children(route(SPLITTING, table(nanos(1, 0.88, 1), nanos(1, 1, 1)), TEXT)))
        .isEqualTo("A: A MEASURED");
  }

  @Test
  void aBatchWhoseGraphMayBeReplayedKeepsItsRoute() {
    Calibration table = table(nanos(1, 1, 1), nanos(9, 9, 9));
    Request decode = new Request(1, 300, 10, 265);

    assertThat(children(route(LOWERING, table, decode, decode)))
        .isEqualTo("B: B NO_IMAGE_QUERY B NO_IMAGE_QUERY");
    assertThat(children(route(LOWERING, table, decode, TEXT)))
        .as("mixed batches are not replayed")
        .isEqualTo("A: A MEASURED A MEASURED");
  }

  @Test
  void anotherKindOfLayerIsRoutedAsBefore() {
    Calibration table =
        new Calibration(
            SOMEWHERE,
            Vector.of(time(GENERAL, Phase.PREFILL, 128, 1), time(FAST, Phase.PREFILL, 128, 9)));

    assertThat(children(route(SPLITTING, table, TEXT))).isEqualTo("B: B NO_IMAGE_QUERY");
    assertThat(new MeasuredRouting(SPLITTING, table, GENERAL, FAST).knows(Batch.layers(IMAGES)))
        .isFalse();
  }

  @Test
  void aPhaseThatWasNotMeasuredForBothChildrenMovesNothing() {
    Calibration table =
        new Calibration(
            SOMEWHERE,
            Vector.of(
                time(GENERAL, Phase.PREFILL, 64, 1),
                time(FAST, Phase.PREFILL, 64, 9),
                time(GENERAL, Phase.IMAGE, 64, 1)));

    assertThat(children(route(LOWERING, table, TEXT, IMAGE)))
        .isEqualTo("LOWERED: B NO_IMAGE_QUERY B LOWERED");
  }

  @Test
  void otherChildrenThanTheMeasuredOnesAreRoutedAsBefore() {
    MeasuredRouting routing =
        new MeasuredRouting(
            SPLITTING, table(nanos(1, 1, 1), nanos(9, 9, 9)), GENERAL, BackendName.of("ANOTHER"));

    assertThat(children(routing.route(Batch.layers(IMAGES), Batch.of(TEXT).metadata())))
        .isEqualTo("B: B NO_IMAGE_QUERY");
  }

  @Test
  void theNearestMeasuredShapeDecides() {
    Calibration table =
        new Calibration(
            SOMEWHERE,
            Vector.of(
                new ChildTime(GENERAL, DType.BF16, 64, Phase.PREFILL, 32, 256, 1),
                new ChildTime(FAST, DType.BF16, 64, Phase.PREFILL, 32, 256, 2),
                new ChildTime(GENERAL, DType.BF16, 64, Phase.PREFILL, 2048, 8192, 2),
                new ChildTime(FAST, DType.BF16, 64, Phase.PREFILL, 2048, 8192, 1)));

    assertThat(children(route(SPLITTING, table, new Request(64, 512)))).isEqualTo("A: A MEASURED");
    assertThat(children(route(SPLITTING, table, new Request(1024, 4096))))
        .isEqualTo("B: B NO_IMAGE_QUERY");
  }

  @Test
  void theReasonSaysWhatWasMeasured() {
    Route moved = route(SPLITTING, table(nanos(1, 1000, 1), nanos(1, 4000, 1)), TEXT);
    // 64 queries over 512 keys see 64 * 512 - 64 * 63 / 2 keys.
    double pairs = 64 * 512 - 64 * 63 / 2.0;

    assertThat(moved.requests().text(0))
        .isEqualTo(
            "the other child is right, too, and slower here; measured: "
                + Math.round(pairs)
                + " µs expected for the batch, "
                + Math.round(4 * pairs)
                + " µs otherwise");
    assertThat(
            route(SPLITTING, table(nanos(1, 4000, 1), nanos(1, 1000, 1)), TEXT).requests().text(0))
        .startsWith("no query lies in an image; measured: ");
  }

  @Test
  void whereNothingCanBeChosenNothingIsSaid() {
    Route route = route(SPLITTING, table(nanos(1, 1, 1), nanos(2, 2, 2)), IMAGE);

    assertThat(route.requests().expected()).isEqualTo(RequestRoutes.Expected.UNKNOWN);
    assertThat(route.requests().text(0)).doesNotContain("measured");
  }

  @ParameterizedTest(name = "window {0}: {1} of {2}")
  @CsvSource({"0, 5, 5", "0, 3, 9", "4, 5, 5", "4, 3, 9", "4, 9, 9", "1, 9, 9", "100, 4, 7"})
  void pairsAreThoseOfTheMask(int window, int queries, int keys) {
    AttentionMask mask =
        window == 0 ? AttentionMask.CAUSAL : AttentionMask.CAUSAL.withWindow(window);
    double counted = 0;
    for (int q = keys - queries; q < keys; q++) {
      counted += window == 0 ? q + 1 : Math.min(q + 1, window);
    }
    assertThat(MeasuredRouting.pairs(mask, queries, keys)).isCloseTo(counted, within(1e-9));
  }

  /** Whatever the times, a request goes nowhere where its mask would be wrong. */
  @ParameterizedTest
  @EnumSource(ImageMask.class)
  void randomTimesNeverMakeARouteWrong(ImageMask mode) {
    long seed = 20_261_130L + mode.ordinal();
    RandomBatches random = new RandomBatches(seed);
    Random times = new Random(seed);
    Map<String, Integer> routes = new HashMap<>();
    Map<RouteReason, Integer> reasons = new EnumMap<>(RouteReason.class);
    for (int i = 0; i < 10_000; i++) {
      MaskJudge judge = new MaskJudge(random.mask(mode), random.flip(), random.lowering());
      Batch batch = random.batch();
      MeasuredRouting routing =
          new MeasuredRouting(
              new MMPrefixAttentionRouting(judge.splits(), judge.lowering()),
              table(some(times), some(times)),
              GENERAL,
              FAST);

      Either<MaskJudge.Refusal, MaskJudge.Answers> right = judge.judge(batch);
      Either<MaskJudge.Refusal, MaskJudge.Answers> seen = judge.ask(routing, batch);

      String at = "seed " + seed + ", batch " + i + ", " + judge + ", " + batch;
      assertThat(seen.isLeft()).as(at).isEqualTo(right.isLeft());
      if (seen.isLeft()) {
        assertThat(seen.getLeft()).as(at).isEqualTo(right.getLeft());
        continue;
      }
      routes.merge(seen.get().route(), 1, Integer::sum);
      requireRight(at, judge, right.get(), seen.get(), reasons);
    }
    assertThat(routes).containsKeys("A", "B");
    assertThat(reasons.get(RouteReason.MEASURED)).isGreaterThan(500);
  }

  private static double[] some(Random times) {
    return nanos(0.1 + times.nextDouble(), 0.1 + times.nextDouble(), 0.1 + times.nextDouble());
  }

  private static void requireRight(
      String at,
      MaskJudge judge,
      MaskJudge.Answers right,
      MaskJudge.Answers seen,
      Map<RouteReason, Integer> reasons) {
    boolean someOnB = false;
    boolean someOnA = false;
    for (int r = 0; r < seen.requests().size(); r++) {
      MaskJudge.Answer wanted = right.requests().get(r);
      MaskJudge.Answer given = seen.requests().get(r);
      reasons.merge(given.reason(), 1, Integer::sum);
      if (given.reason() == RouteReason.EMPTY) {
        continue;
      }
      someOnA |= given.child() == Child.A;
      someOnB |= given.child() == Child.B;
      if (given.child() == Child.B) {
        assertThat(given).as(at).isEqualTo(wanted);
      } else {
        assertThat(given.runs()).as(at).isEqualTo(List.of());
        assertThat(given.reason())
            .as(at)
            .isEqualTo(wanted.child() == Child.A ? wanted.reason() : RouteReason.MEASURED);
      }
    }
    assertThat(someOnA && someOnB && !judge.splits()).as(at).isFalse();
    assertThat(seen.route().equals("A") || someOnB || !someOnA).as(at).isTrue();
  }
}

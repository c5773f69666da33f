package bifocal.composite;

import static bifocal.composite.TestBatch.lens;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.composite.SummingBackend.Journal;
import bifocal.composite.SummingBackend.Metadata;
import bifocal.core.backend.Feature;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.LoweredRuns;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RouteReason;
import bifocal.core.route.RoutingPolicy;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.control.Option;
import java.util.Random;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Images on a child that knows no images, as causal and non-causal runs. */
class LoweredTest {
  private static final RoutingPolicy LOWERING =
      new MMPrefixAttentionRouting().withLowering(Lowering.LEFT_WINDOW);

  private final Journal journal = new Journal();
  private final SummingBackend general = new SummingBackend("GENERAL", journal);
  private final SummingBackend fast =
      new SummingBackend("FAST", journal).with(SummingBackend.PLAIN.withImageMasks());

  private TestHost<CompositeMetadata<Metadata, Metadata>> host(
      RoutingPolicy policy, LayerGroup group) {
    var host =
        new TestHost<>(
            CompositeBackends.createCompositeBackendOrThrow(general, fast, policy),
            group,
            new WatchedLaunch());
    journal.events.clear();
    return host;
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theFastChildRunsImagesAsRuns(boolean indirect) {
    if (indirect) {
      fast.withMoreFeatures(Feature.INDIRECT_REQUESTS);
    }
    var batch = TestBatch.of(lens(2, 10), 6, 12).images(lens(), lens(4, 8)).build();

    host(LOWERING, TestHost.GROUP).run(batch);

    assertThat(journal.events).containsExactly("FAST builds", "GENERAL writes", "FAST forwards");
    CommonAttentionMetadata runs = journal.built.getFirst().batch();
    AttentionMask mask = journal.built.getFirst().group().mask();
    assertThat(mask.images()).isEqualTo(ImageMask.NONE);
    assertThat(runs.images().isEmpty()).isTrue();
    assertThat(runs.live()).isEqualTo(4);
    assertThat(runs.queryLen(1)).isEqualTo(2);
    assertThat(runs.queryLen(2)).isEqualTo(5);
    assertThat(runs.seqLen(2)).isEqualTo(9);
    assertThat(runs.rightWindow(1, mask)).isZero();
    assertThat(runs.rightWindow(2, mask)).isEqualTo(-1);
  }

  @RepeatedTest(300)
  void loweredAndDividedRunsEqualTheImageMask(RepetitionInfo repetition) {
    long seed = 11_000 + repetition.getCurrentRepetition();
    Random random = new Random(seed);
    if (random.nextBoolean()) {
      fast.withMoreFeatures(Feature.INDIRECT_REQUESTS);
    }
    if (random.nextBoolean()) {
      general.withMoreFeatures(Feature.INDIRECT_REQUESTS);
    }
    ImageMask images = random.nextBoolean() ? ImageMask.OVERRIDE : ImageMask.CLAMP_PAST;
    AttentionMask mask = AttentionMask.CAUSAL.withImages(images);
    LayerGroup group =
        LayerGroup.of(
            "layer.0",
            TestHost.LAYER.withMask(
                random.nextBoolean() ? mask.withWindow(1 + random.nextInt(12)) : mask));
    CommonAttentionMetadata batch = RandomBatches.of(random);

    var lowered = host(LOWERING, group).run(batch);

    var whole = TestHost.alone(group, batch);
    assertThat(lowered.values()).as("seed %d", seed).isEqualTo(whole.values());
    assertThat(lowered.lseValues()).as("seed %d", seed).isEqualTo(whole.lseValues());
  }

  @Test
  void theFastChildsWorkspaceIsPlannedForAsManyRequestsAsThereAreQueries() {
    host(LOWERING, TestHost.GROUP);

    assertThat(journal.limits.get(0).maxRequests()).isEqualTo(TestHost.LIMITS.maxRequests());
    assertThat(journal.limits.get(1).maxRequests()).isEqualTo(TestHost.LIMITS.maxQueryTokens());
  }

  @Test
  void runsThatLeaveAQueryOutAreRefused() {
    refused(LoweredRuns.builder(1).run(0, 3, 0).run(5, 7, -1).endRequest().build());
  }

  @Test
  void runsThatReachBeyondTheSequenceAreRefused() {
    refused(LoweredRuns.builder(1).run(0, 3, 0).run(4, 8, -1).endRequest().build());
  }

  @Test
  void runsThatBeginBeforeTheScheduledQueriesAreRefused() {
    FakePolicy policy =
        lowersTo(LoweredRuns.builder(1).run(0, 3, 0).run(4, 7, -1).endRequest().build());

    assertThatThrownBy(() -> host(policy, TestHost.GROUP).run(TestBatch.text(6, 8)))
        .isInstanceOfSatisfying(
            BifocalException.class,
            e -> assertThat(e.code()).isEqualTo(ErrorCode.QUERY_START_INVALID));
  }

  private void refused(LoweredRuns runs) {
    assertThatThrownBy(() -> host(lowersTo(runs), TestHost.GROUP).run(TestBatch.text(8, 8)))
        .isInstanceOfSatisfying(
            BifocalException.class,
            e -> assertThat(e.code()).isEqualTo(ErrorCode.QUERY_START_INVALID));
    assertThat(journal.events).isEmpty();
  }

  private static FakePolicy lowersTo(LoweredRuns runs) {
    return FakePolicy.of(
            (group, batch) ->
                new Route.Lowered(
                    RequestRoutes.all(batch.live(), Child.B, RouteReason.LOWERED), runs))
        .onlyACarriesImages()
        .lowering();
  }

  @Test
  void aLoweredBatchWithARequestForTheGeneralChildIsRefused() {
    FakePolicy policy =
        FakePolicy.of(
                (group, batch) ->
                    new Route.Lowered(
                        FakePolicy.routes(batch, r -> r == 0 ? Child.A : Child.B),
                        LoweredRuns.builder(2).endRequest().endRequest().build()))
            .onlyACarriesImages()
            .lowering();

    assertThatThrownBy(
            () -> host(policy, TestHost.GROUP).run(TestBatch.of(lens(2, 2), 3, 4).build()))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.SHAPE_MISMATCH));
  }

  @Test
  void aRouteThatThePolicyDidNotAnnounceIsRefused() {
    FakePolicy splitting =
        FakePolicy.of((group, batch) -> FakePolicy.split(batch, r -> Child.B))
            .onlyACarriesImages()
            .wholeBatches();
    FakePolicy lowering =
        FakePolicy.of(
                (group, batch) ->
                    new Route.SplitByRequest(
                        FakePolicy.routes(batch, r -> Child.B),
                        Option.some(LoweredRuns.builder(1).run(0, 7, -1).endRequest().build())))
            .onlyACarriesImages();

    for (FakePolicy policy : new FakePolicy[] {splitting, lowering}) {
      assertThatThrownBy(() -> host(policy, TestHost.GROUP).run(TestBatch.text(8, 8)))
          .isInstanceOfSatisfying(
              BifocalException.class,
              e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_COMPOSITION));
    }
  }

  /** C18: each request gets the same output wherever the order of the batch puts it. */
  @RepeatedTest(100)
  void theOrderOfABatchChangesNoRequestsOutput(RepetitionInfo repetition) {
    long seed = 18_000 + repetition.getCurrentRepetition();
    Random random = new Random(seed);
    fast.withDecodeThreshold(1);
    general.withDecodeThreshold(4);
    if (random.nextBoolean()) {
      fast.withMoreFeatures(Feature.INDIRECT_REQUESTS);
    }
    RoutingPolicy policy =
        switch (random.nextInt(3)) {
          case 0 -> new MMPrefixAttentionRouting();
          case 1 -> new MMPrefixAttentionRouting().wholeBatch();
          default -> LOWERING;
        };
    int[][] requests = {{4, 20}, {12, 25}, {4, 9}, {1, 30}, {8, 8}};
    int[][] images = {{}, {15, 22}, {}, {2, 7}, {1, 5}};
    int[] order = {0, 1, 2, 3, 4};
    var composite = host(policy, TestHost.GROUP);
    var arrived = composite.run(batch(requests, images, order));

    for (int place = order.length - 1; place > 0; place--) {
      int other = random.nextInt(place + 1);
      int kept = order[place];
      order[place] = order[other];
      order[other] = kept;
    }
    CommonAttentionMetadata moved = batch(requests, images, order);
    var sorted = composite.run(moved);

    assertThat(sorted.values())
        .as("seed %d, order %s", seed, java.util.Arrays.toString(order))
        .isEqualTo(TestHost.alone(TestHost.GROUP, moved).values());
    assertThat(arrived.values())
        .as("seed %d", seed)
        .isEqualTo(
            TestHost.alone(TestHost.GROUP, batch(requests, images, new int[] {0, 1, 2, 3, 4}))
                .values());
  }

  private static CommonAttentionMetadata batch(int[][] requests, int[][] images, int[] order) {
    int[] queryLens = new int[order.length];
    int[] seqLens = new int[order.length];
    int[][] bounds = new int[order.length][];
    for (int place = 0; place < order.length; place++) {
      queryLens[place] = requests[order[place]][0];
      seqLens[place] = requests[order[place]][1];
      bounds[place] = images[order[place]];
    }
    return TestBatch.of(queryLens, seqLens).images(bounds).build();
  }

  /** C18: the composite states the smaller threshold of its children, whichever that is. */
  @ParameterizedTest
  @ValueSource(ints = {1, 4, 9})
  void theThresholdIsTheSmallerOfBoth(int ofFast) {
    general.withDecodeThreshold(4);
    fast.withDecodeThreshold(ofFast);

    assertThat(host(LOWERING, TestHost.GROUP).builder.decodeThreshold())
        .contains(Math.min(4, ofFast));
  }
}

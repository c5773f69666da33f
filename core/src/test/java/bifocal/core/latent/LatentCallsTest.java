package bifocal.core.latent;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.error.BifocalException;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Rules that backends of several platforms share when they call a kernel of latent attention. */
class LatentCallsTest {
  private static final BackendName NAME = BackendName.of("ROCM_AITER_MLA");

  private static DecodeSharing shared(int ranks) {
    return new DecodeSharing(new SharedSequence(ranks, 1), DecodeSharing.Exchange.DEFAULT);
  }

  @ParameterizedTest(name = "{0} keys, {1} units: {2} parts")
  @CsvSource({
    "0, 100, 1",
    "1, 100, 1",
    "511, 100, 1",
    "1023, 100, 1",
    "1024, 100, 2",
    "1535, 100, 2",
    "1536, 100, 4",
    "2047, 100, 4",
    "2048, 100, 4",
    "2559, 100, 4",
    "2560, 100, 8",
    "4096, 4, 8",
    "4608, 4, 8",
    "65536, 32, 64",
    "65536, 64, 128",
    "65536, 65, 128",
    "131072, 132, 256",
    "1048576, 132, 264",
    "1048576, 1, 2",
    "2147483647, 2147483647, 4194304",
  })
  void keysAreCutIntoPartsByLengthAndUnits(int longest, int units, int parts) {
    assertThat(KvSplits.ofWholeRuns(longest, units)).isEqualTo(parts);
  }

  @ParameterizedTest(name = "{0} keys, {1} units")
  @CsvSource({"-1, 1", "512, 0"})
  void keysOfNoLengthAndNoUnitsAreRefused(int longest, int units) {
    assertThatThrownBy(() -> KvSplits.ofWholeRuns(longest, units))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("keys and units");
  }

  @Test
  void scalesOfAQuantisedCacheGoToScoresAndOutputs() {
    assertThat(LatentScales.quantized(0.5, 4, 0.25)).isEqualTo(new LatentScales(0.5, 0.25));
    assertThat(LatentScales.quantized(0.5, 4, 2)).isEqualTo(new LatentScales(4, 2));
  }

  @Test
  void scalesOfAPlainCacheAreTheLayers() {
    assertThat(LatentScales.plain(0.5)).isEqualTo(new LatentScales(0.5, 1));
  }

  @Test
  void aTwoWayBlockFlattensToTokensThatSeeAllOfTheirRequest() {
    assertThat(new QueryBlock(3, 9, Vector.of(108, 208, 0)).flattened())
        .isEqualTo(new QueryBlock(9, 9, Vector.of(108, 108, 108, 208, 208, 208, 0, 0, 0)));
  }

  @Test
  void aBlockOfSingleTokensIsFlat() {
    QueryBlock block = new QueryBlock(2, 2, Vector.of(7, 9));

    assertThat(block.flattened()).isEqualTo(block);
  }

  @Test
  void raggedKeysLeaveOutEntriesThatAreNone() {
    RaggedKeys ragged =
        RaggedKeys.of(
            new ChosenKeys(
                4, new long[] {5, -1, 3, -1, -1, -1, -1, -1, 9, 8, 7, 6}, Option.none()));

    assertThat(ragged.starts()).containsExactly(0, 2, 2, 6);
    assertThat(ragged.slots()).containsExactly(5, 3, 9, 8, 7, 6);
  }

  @ParameterizedTest(name = "{0} ranks, log-sum-exp {1}: returns {2}, refused {3}")
  @CsvSource({
    "1, none, false, false",
    "2, none, false, true",
    "1, LSE, false, false",
    "2, LSE, true, false",
    "2, LSE_BASE_2, true, false",
  })
  void sharedDecodesReturnTheirLogSumExp(
      int ranks, String feature, boolean returned, boolean refused) {
    FeatureSet features =
        feature.equals("none")
            ? FeatureSet.NONE
            : FeatureSet.NONE.withFeatures(Feature.valueOf(feature));
    DecodeSharing sharing = shared(ranks);

    assertThat(sharing.returnsLogSumExp(features)).isEqualTo(returned);
    assertThat(sharing.objections(NAME, features, 16, 0).nonEmpty()).isEqualTo(refused);
  }

  @Test
  void aDecodeWithoutLogSumExpIsRefusedToTheLetter() {
    assertThat(shared(2).objections(NAME, FeatureSet.NONE, 16, 0))
        .containsExactly(
            "Decode Context Parallelism (DCP) requires attention implementations to return the"
                + " softmax LSE during decode, but ROCM_AITER_MLA does not. Try a different backend"
                + " by setting --attention-backend or disable DCP.");
  }

  @Test
  void partialResultsMeetByGatherAndReduceUnlessTheUserSaysOtherwise() {
    assertThat(DecodeSharing.Exchange.DEFAULT).isEqualTo(DecodeSharing.Exchange.AG_RS);
  }

  @ParameterizedTest(name = "{0} ranks, PCP {1}: {2}")
  @CsvSource({
    "1, false, none",
    "2, true, none",
    "2, false, 'PCP requires attention backend support, but ROCM_AITER_MLA does not support PCP.'",
  })
  void sharedPrefillsNeedABackendThatSharesThem(int ranks, boolean shares, String text) {
    FeatureSet features = shares ? FeatureSet.NONE.withFeatures(Feature.PCP) : FeatureSet.NONE;

    assertThat(new PrefillSharing(ranks).objection(NAME, features).getOrElse("none"))
        .isEqualTo(text);
  }
}

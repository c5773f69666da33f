package bifocal.cuda.select;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.Feature;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KernelSettings;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.latent.ChosenKeys;
import bifocal.core.latent.LatentScales;
import bifocal.core.latent.QueryQuantization;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import bifocal.cuda.select.FlashAttentionLatent.Slice;
import io.vavr.collection.HashSet;
import io.vavr.control.Option;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;

/** What calls of latent kernels are made of, a backend each, and what the kernels refuse. */
class LatentCallsTest {
  private static final long MIB = 1024L * 1024;

  private static AttentionLayerSpec.Mla layer(int rank, int rope, KvCacheDtype cache) {
    return new AttentionLayerSpec.Mla(
        128, rank, 128, rope, 128, DType.BF16, cache, AttentionMask.CAUSAL, 0.1, false);
  }

  private static AttentionLayerSpec.Mla layer(int rank, int rope) {
    return layer(rank, rope, KvCacheDtype.AUTO);
  }

  @Nested
  class Cutlass {
    @ParameterizedTest
    @CsvSource({"1", "31", "127", "128"})
    void everyCallHas128Heads(int heads) {
      assertThat(CutlassLatent.paddedHeads(heads)).isEqualTo(128);
    }

    @ParameterizedTest
    @CsvSource({"0", "129"})
    void otherHeadsHaveNoCall(int heads) {
      assertThatThrownBy(() -> CutlassLatent.paddedHeads(heads))
          .isInstanceOf(BifocalException.class)
          .hasMessageContaining("1 to 128");
    }

    @ParameterizedTest(name = "{0}, {1}: refused {2}")
    @CsvSource({"512, 64, false", "256, 64, true", "512, 0, true", "320, 0, true"})
    void latentsHave512ElementsAndRotaryKeys64(int rank, int rope, boolean refused) {
      assertThat(CutlassLatent.dimensions(layer(rank, rope)).isDefined()).isEqualTo(refused);
    }

    @ParameterizedTest(name = "q {0}, k {1}")
    @CsvSource({"0.5, 1", "1, 0.5", "2, 2"})
    void scalesAreRefusedToTheLetter(double query, double key) {
      assertThat(CutlassLatent.scales(query, key).map(InvalidReason::text))
          .contains("CutlassMLAImpl does not support scaling for q and kv_latent yet");
    }

    @Test
    void scalesOfOneAreServed() {
      assertThat(CutlassLatent.scales(1, 1)).isEmpty();
    }

    @ParameterizedTest(name = "{0} gives {1}")
    @CsvSource({"FP8_E4M3, BF16", "BF16, BF16", "FP16, FP16"})
    void fp8QueriesGiveBf16(DType query, DType output) {
      assertThat(CutlassLatent.output(query)).isEqualTo(output);
    }

    @Test
    void theWorkspaceHas128Mebibytes() {
      assertThat(CutlassLatent.WORKSPACE_BYTES).isEqualTo(128 * MIB);
    }

    @Test
    void theEnvironmentForcesSplits() {
      assertThat(CutlassLatent.FORCED_SPLITS).isEqualTo("FORCE_NUM_KV_SPLITS");
      assertThat(CutlassLatent.splits(Option.some("16"))).contains(16);
      assertThat(CutlassLatent.splits(Option.none())).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"''", "0", "-1", "many", "99999999999"})
    void otherWordsOfTheEnvironmentAreRefused(String forced) {
      assertThatThrownBy(() -> CutlassLatent.splits(Option.some(forced)))
          .isInstanceOf(BifocalException.class)
          .hasMessageContaining("FORCE_NUM_KV_SPLITS");
    }
  }

  @Nested
  class FlashInfer {
    @ParameterizedTest(name = "{0} heads: tiles of {1}, {2}")
    @CsvSource({
      "1, 8, AUTO",
      "7, 8, AUTO",
      "8, 8, AUTO",
      "9, 16, AUTO",
      "16, 16, AUTO",
      "17, 16, CUTE_DSL",
      "24, 16, CUTE_DSL",
      "31, 16, CUTE_DSL",
      "32, 16, AUTO",
      "33, 64, AUTO",
      "48, 64, AUTO",
      "64, 64, AUTO",
      "65, 64, CUTE_DSL",
      "96, 64, CUTE_DSL",
      "128, 64, AUTO",
    })
    void headsThatFillNoTilesGoToAnotherKernel(
        int heads, int tile, FlashInferLatent.Kernel kernel) {
      assertThat(FlashInferLatent.headTile(heads)).isEqualTo(tile);
      assertThat(FlashInferLatent.kernel(heads)).isEqualTo(kernel);
    }

    @Test
    void theOtherKernelHasTheNameThatTheLibraryKnows() {
      assertThat(FlashInferLatent.Kernel.CUTE_DSL.label()).isEqualTo("cute-dsl");
    }

    @ParameterizedTest(name = "log-sum-exp {0}: {1} MiB")
    @CsvSource({"false, 128", "true, 256"})
    void theWorkspaceDoublesForTheLogSumExp(boolean returned, long mebibytes) {
      assertThat(FlashInferLatent.workspaceBytes(returned)).isEqualTo(mebibytes * MIB);
    }

    @ParameterizedTest(name = "{0}: {1} on scores, {2} on outputs")
    @CsvSource({"FP8, 4, 2", "FP8_E4M3, 4, 2", "AUTO, 0.5, 1", "BFLOAT16, 0.5, 1"})
    void scalesCountWhereTheCacheIsQuantised(KvCacheDtype cached, double score, double output) {
      assertThat(FlashInferLatent.scales(cached, 0.5, 4, 2))
          .isEqualTo(new LatentScales(score, output));
    }
  }

  @Nested
  class TokenSpeed {
    private Option<String> objection(int drafted) {
      DeviceProfile device =
          new DeviceProfile.Cuda(new ComputeCapability(10, 0), HashSet.empty(), true);
      return DenseLatent.TOKENSPEED
          .objection(
              new AttentionRequest(
                  layer(512, 64, KvCacheDtype.FP8),
                  device,
                  Option.none(),
                  new Deployment(
                      false,
                      1,
                      1,
                      false,
                      false,
                      false,
                      false,
                      false,
                      false,
                      drafted,
                      KernelSettings.DEFAULT)))
          .map(InvalidReason::text);
    }

    @ParameterizedTest(name = "{0} query tokens: refused {1}")
    @CsvSource({"1, false", "7, false", "8, false", "9, true"})
    void decodesHaveAtMostEightTokens(long tokens, boolean refused) {
      assertThat(TokenSpeedLatent.queryTokens(tokens).isDefined()).isEqualTo(refused);
    }

    @Test
    void sevenDraftedTokensAreVerifiedAndEightRefusedByTheSelection() {
      assertThat(objection(0)).isEmpty();
      assertThat(objection(7)).isEmpty();
      assertThat(objection(8))
          .contains("TOKENSPEED_MLA decodes at most 8 query tokens of a request, got 9");
    }

    @Test
    void queriesComeQuantised() {
      assertThat(TokenSpeedLatent.QUERIES).isEqualTo(QueryQuantization.BY_LAYER);
      assertThat(TokenSpeedLatent.queryType(DType.FP8_E4M3)).isEmpty();
      assertThat(TokenSpeedLatent.queryType(DType.BF16)).isNotEmpty();
    }

    @Test
    void scalesGoToScoresAndOutputs() {
      assertThat(TokenSpeedLatent.scales(0.5, 4, 2)).isEqualTo(new LatentScales(4, 2));
    }

    @ParameterizedTest
    @EnumSource(names = {"AUTO", "FLOAT16", "BFLOAT16"})
    void plainCachesAreRefusedToTheLetter(KvCacheDtype cached) {
      assertThat(TokenSpeedLatent.cacheType(cached).map(InvalidReason::text))
          .contains(
              "TokenspeedMLAImpl requires an FP8 KV cache (--kv-cache-dtype fp8 or fp8_e4m3); got"
                  + " kv_cache_dtype='"
                  + cached.label()
                  + "'.");
    }

    @ParameterizedTest
    @EnumSource(names = {"FP8", "FP8_E4M3"})
    void fp8CachesAreServed(KvCacheDtype cached) {
      assertThat(TokenSpeedLatent.cacheType(cached)).isEmpty();
    }
  }

  @Nested
  class Triton {
    @ParameterizedTest(name = "{0} keys, {1} multiprocessors, batch invariant {2}: {3} parts")
    @CsvSource({
      "511, 132, false, 1",
      "1536, 132, false, 4",
      "131072, 132, false, 256",
      "262144, 132, false, 264",
      "262144, 132, true, 1",
      "511, 132, true, 1",
    })
    void keysAreCutUnlessResultsMayNotDependOnTheBatch(
        int longest, int multiprocessors, boolean batchInvariant, int parts) {
      assertThat(TritonLatent.splits(longest, multiprocessors, batchInvariant)).isEqualTo(parts);
    }

    @ParameterizedTest
    @EnumSource(names = {"FP16", "BF16"})
    void theLogSumExpHasTheTypeOfQueries(DType query) {
      assertThat(TritonLatent.logSumExp(query)).isEqualTo(query);
    }

    @Test
    void cachedNumbersOfEightBitsAreTurnedBackOnLoad() {
      assertThat(TritonLatent.QUERIES).isEqualTo(QueryQuantization.NEVER);
    }

    @Test
    void blocksThatAttendBothWaysAreServed() {
      assertThat(DenseLatent.TRITON.capabilities().all().has(Feature.NON_CAUSAL)).isTrue();
    }
  }

  @Nested
  class FlashAttention {
    @Test
    void rotaryPartsAreQueryAndKeyAndLatentsAreValues() {
      assertThat(FlashAttentionLatent.of(layer(512, 64)))
          .isEqualTo(
              new FlashAttentionLatent(
                  new Slice(512, 64), new Slice(512, 64), new Slice(0, 512), new Slice(0, 512)));
    }

    @ParameterizedTest
    @EnumSource(names = {"FP8", "FP8_E4M3"})
    void fp8CachesAreRefusedToTheLetter(KvCacheDtype cached) {
      assertThat(FlashAttentionLatent.cacheType(cached).map(InvalidReason::text))
          .contains("FlashAttnMLA V1 with FP8 KV cache not yet supported");
    }

    @ParameterizedTest
    @EnumSource(names = {"AUTO", "FLOAT16", "BFLOAT16"})
    void plainCachesAreServed(KvCacheDtype cached) {
      assertThat(FlashAttentionLatent.cacheType(cached)).isEmpty();
    }

    @Test
    void theLogSumExpArrivesByHead() {
      assertThat(FlashAttentionLatent.logSumExpByToken(new float[] {1, 2, 3, 4, 5, 6}, 2, 3))
          .containsExactly(1, 4, 2, 5, 3, 6);
    }

    @Test
    void aLogSumExpOfAnotherSizeIsRefused() {
      assertThatThrownBy(() -> FlashAttentionLatent.logSumExpByToken(new float[5], 2, 3))
          .isInstanceOf(BifocalException.class)
          .hasMessageContaining("2 heads of 3 tokens");
    }
  }

  @Nested
  class FlashMlaSparse {
    @ParameterizedTest(name = "{0} heads: {1}")
    @CsvSource({
      "1, MIXED_BATCH",
      "31, MIXED_BATCH",
      "32, SEPARATE",
      "33, SEPARATE",
      "128, SEPARATE"
    })
    void fewHeadsRunEveryTokenOnTheDecodeKernel(int heads, FlashMlaSparseHeads.Path path) {
      assertThat(new FlashMlaSparseHeads(heads).path()).isEqualTo(path);
    }

    @ParameterizedTest(name = "{0} heads: {1}")
    @CsvSource({"1, 64", "63, 64", "64, 64", "65, 128", "128, 128"})
    void decodesHave64Or128Heads(int heads, int padded) {
      assertThat(new FlashMlaSparseHeads(heads).decodeHeads()).isEqualTo(padded);
    }

    @ParameterizedTest(name = "{0} heads on {1}.x: {2}")
    @CsvSource({
      "32, 9, 64",
      "64, 9, 64",
      "65, 9, 128",
      "128, 9, 128",
      "32, 10, 128",
      "64, 10, 128",
      "128, 10, 128",
    })
    void prefillsArePaddedByGeneration(int heads, int major, int padded) {
      assertThat(new FlashMlaSparseHeads(heads).prefillHeads(major)).isEqualTo(padded);
    }

    @Test
    void otherGenerationsHaveNoPrefill() {
      assertThatThrownBy(() -> new FlashMlaSparseHeads(32).prefillHeads(12))
          .isInstanceOf(BifocalException.class)
          .hasMessageContaining("9, 10");
    }

    @ParameterizedTest
    @CsvSource({"0", "129"})
    void otherHeadsHaveNoCall(int heads) {
      assertThatThrownBy(() -> new FlashMlaSparseHeads(heads))
          .isInstanceOf(BifocalException.class)
          .hasMessageContaining("1 to 128");
    }

    @ParameterizedTest(name = "{0} heads, {1} tokens: {2} rows")
    @CsvSource({
      "32, 4096, 20480",
      "128, 163840, 819200",
      "31, 4096, 0",
      "32, 2147483647, 10737418235",
    })
    void prefillsUnpackIntoFiveContextsOfRows(int heads, int maxModelLen, long rows) {
      assertThat(new FlashMlaSparseHeads(heads).workspaceRows(maxModelLen)).isEqualTo(rows);
    }
  }

  @Nested
  class FlashAttentionSparse {
    @Test
    void everyTokenIsARequestWhoseChosenSlotsAreItsPages() {
      FlashAttentionSparseTable table =
          FlashAttentionSparseTable.of(
              new ChosenKeys(3, new long[] {-1, 7, 5, -1, -1, -1}, Option.none()));

      assertThat(FlashAttentionSparseTable.PAGE_SIZE).isEqualTo(1);
      assertThat(table.width()).isEqualTo(3);
      assertThat(table.blockTable()).containsExactly(7, 5, -1, -1, -1, -1);
      assertThat(table.seqLens()).containsExactly(2, 0);
    }

    @ParameterizedTest(name = "{0} rotary elements: {1}, zeros {2}")
    @CsvSource({"64, 64, false", "0, 64, true"})
    void queriesAreAPairWhoseRotaryPartIsZerosWhereTheModelHasNone(
        int rope, int elements, boolean zeros) {
      assertThat(FlashAttentionSparseTable.query(layer(512, rope)))
          .isEqualTo(new FlashAttentionSparseTable.QueryPair(512, elements, zeros));
    }
  }

  @Nested
  class FlashInferSparse {
    @ParameterizedTest(name = "{0}: {1}")
    @CsvSource({
      "glm4_moe, arbitrary_fp32",
      "glm_moe_dsa, arbitrary_fp32",
      "glm, arbitrary_fp32",
      "chatglm, pow2_fp32",
      "deepseek_v32, pow2_fp32",
      "deepseek_v3, pow2_fp32",
    })
    void packedScalesAreArbitraryInOneFamilyOfModels(String modelType, String format) {
      assertThat(PackedScaleFormat.ofModelType(modelType).label()).isEqualTo(format);
    }

    @ParameterizedTest(name = "top {1}, pools of {2}, context {0}: {3}")
    @CsvSource({
      "0, 2048, 4, 0",
      "1, 2048, 4, 1",
      "2047, 2048, 4, 2047",
      "2048, 2048, 4, 2048",
      "2049, 2048, 4, 2049",
      "2051, 2048, 4, 2051",
      "2052, 2048, 4, 2048",
      "100000, 2048, 1, 2048",
      "4097, 2048, 64, 2049",
    })
    void rowsOfHopperReadWhatIsChosenAndTheOpenPool(int context, int topk, int pool, int length) {
      assertThat(new FlashInferSm90Plan(topk, pool).rowLength(context)).isEqualTo(length);
    }

    @Test
    void hopperReadsPagesOfOneTokenWithoutACausalMask() {
      assertThat(FlashInferSm90Plan.PAGE_SIZE).isEqualTo(1);
      assertThat(FlashInferSm90Plan.CAUSAL).isFalse();
      assertThat(FlashInferSm90Plan.WORKSPACE_BYTES).isEqualTo(128 * MIB);
      assertThat(FlashInferSm90Plan.QUERIES).isEqualTo(QueryQuantization.NEVER);
    }

    @Test
    void hopperPlansOutsideGraphCapture() {
      FlashInferSm90Plan.requirePlannable(false);

      assertThatThrownBy(() -> FlashInferSm90Plan.requirePlannable(true))
          .isInstanceOfSatisfying(
              BifocalException.class,
              failure -> assertThat(failure.code()).isEqualTo(ErrorCode.NOT_CAPTURABLE));
    }
  }
}

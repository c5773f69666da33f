package bifocal.cuda.select;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.KernelSettings;
import bifocal.core.backend.KernelSettings.FlashAttentionVersion;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import bifocal.cuda.select.FlashInferKernels.Phase;
import io.vavr.collection.LinkedHashSet;
import io.vavr.control.Option;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which version or kernel of a family serves a layer, rule by rule. */
class KernelVersionsTest {
  private static final AttentionLayerSpec.Dense LAYER =
      AttentionLayerSpec.Dense.decoder(32, 8, 128, DType.BF16, AttentionMask.CAUSAL);

  private static AttentionRequest on(String capability, AttentionLayerSpec layer, String... no) {
    String[] parts = capability.split("\\.");
    return AttentionRequest.of(
        layer,
        new DeviceProfile.Cuda(
            new ComputeCapability(Integer.parseInt(parts[0]), Integer.parseInt(parts[1])),
            LinkedHashSet.of(no),
            true));
  }

  private static AttentionRequest with(AttentionRequest request, KernelSettings kernels) {
    return deployed(request, request.deployment().withKernels(kernels));
  }

  private static AttentionRequest deployed(AttentionRequest request, Deployment deployment) {
    return new AttentionRequest(request.layer(), request.device(), request.blockSize(), deployment);
  }

  private static AttentionRequest wanting(AttentionRequest request, int version) {
    return with(
        request,
        KernelSettings.DEFAULT.withFlashAttention(new FlashAttentionVersion(version, false)));
  }

  private static KernelSettings trtllm(boolean forced) {
    return new KernelSettings(
        Option.none(), Option.some(forced), false, false, KernelSettings.Aiter.DEFAULT);
  }

  @ParameterizedTest(name = "version defaults: {0}")
  @CsvSource({"8.0, 2", "8.9, 2", "9.0, 3", "10.0, 4", "10.3, 4", "11.0, 2", "12.0, 2"})
  void byDefault(String capability, int version) {
    assertThat(FlashAttentionVersions.of(on(capability, LAYER)).version()).isEqualTo(version);
  }

  @ParameterizedTest(name = "version rules: preferred {1} on {0} becomes {2}")
  @CsvSource({"10.0, 3, 4", "12.0, 3, 2", "9.0, 4, 4", "9.0, 2, 2", "8.0, 3, 0", "8.0, 4, 0"})
  void aPreferredVersionPassesTheRules(String capability, int preferred, int version) {
    assertThat(FlashAttentionVersions.of(wanting(on(capability, LAYER), preferred)).version())
        .isEqualTo(version);
  }

  @ParameterizedTest(name = "version rules: ALiBi on {0}")
  @CsvSource({
    "9.0, 'Cannot use FA version 3 with ALiBi, defaulting to FA version 2.'",
    "10.0, 'Cannot use FA version 4 with ALiBi, defaulting to FA version 2.'"
  })
  void alibiIsVersion2(String capability, String note) {
    FlashAttentionVersions.Resolution resolution =
        FlashAttentionVersions.of(on(capability, LAYER.withAlibi(true)));

    assertThat(resolution.version()).isEqualTo(2);
    assertThat(resolution.notes()).containsExactly(note);
  }

  @Test
  void perSequenceCausalIsVersion4OnHopper() {
    AttentionRequest request =
        with(
            on("9.0", LAYER),
            new KernelSettings(
                Option.none(), Option.none(), true, false, KernelSettings.Aiter.DEFAULT));

    assertThat(FlashAttentionVersions.of(request).version()).isEqualTo(4);
    assertThat(FlashAttentionVersions.of(request).notes().head())
        .startsWith("Per-sequence causal (dynamic_causal) requires FA4");
  }

  @Test
  void widerKeysWithSinksAreVersion4OnHopper() {
    AttentionLayerSpec.Dense layer =
        AttentionLayerSpec.Dense.decoder(32, 8, 192, DType.BF16, AttentionMask.CAUSAL)
            .withHeadSizeV(128)
            .withSinks(true);

    assertThat(FlashAttentionVersions.of(on("9.0", layer)).version()).isEqualTo(4);
    assertThat(FlashAttentionVersions.of(on("9.0", layer.withSinks(false))).version()).isEqualTo(3);
  }

  @Test
  void widerKeysOf192KeepVersion4OnBlackwell() {
    AttentionLayerSpec.Dense layer =
        AttentionLayerSpec.Dense.decoder(32, 8, 192, DType.BF16, AttentionMask.CAUSAL)
            .withHeadSizeV(128);

    assertThat(FlashAttentionVersions.of(on("10.0", layer)).version()).isEqualTo(4);
  }

  @ParameterizedTest(name = "head-256 blockers: {0}")
  @CsvSource({
    "sinks, attention sinks",
    "softcap, logits soft capping",
    "quantized, quantized KV cache dtype fp8",
    "page, a KV cache block size of 64",
    "images, mm_prefix bidirectional attention",
    "rswa, R-SWA",
    "dcp, decode context parallelism",
  })
  void eachBlockerOfTheHead256KernelIsNamed(String blocker, String text) {
    AttentionLayerSpec.Dense layer =
        AttentionLayerSpec.Dense.decoder(32, 8, 256, DType.BF16, AttentionMask.CAUSAL);
    layer =
        switch (blocker) {
          case "sinks" -> layer.withSinks(true);
          case "softcap" -> layer.withSoftcap(50);
          case "quantized" -> layer.withKvCacheDtype(KvCacheDtype.FP8);
          default -> layer;
        };
    Deployment deployment =
        new Deployment(
            blocker.equals("images"),
            blocker.equals("dcp") ? 2 : 1,
            1,
            false,
            false,
            false,
            blocker.equals("rswa"),
            false,
            false);

    FlashAttentionVersions.Resolution resolution =
        FlashAttentionVersions.of(
            deployed(on("10.0", layer), deployment), Option.when(blocker.equals("page"), 64));

    assertThat(resolution.version()).isEqualTo(2);
    assertThat(resolution.notes())
        .containsExactly(
            "FA4's Blackwell head_size=256 kernel does not support "
                + text
                + ", defaulting to FA version 2.");
  }

  @Test
  void turboQuantCachesDoNotCountAsQuantized() {
    assertThat(FlashAttentionVersions.quantized(KvCacheDtype.TURBOQUANT_K8V4)).isFalse();
    assertThat(FlashAttentionVersions.quantized(KvCacheDtype.INT8_PER_TOKEN_HEAD)).isTrue();
    assertThat(FlashAttentionVersions.quantized(KvCacheDtype.NVFP4)).isTrue();
  }

  @ParameterizedTest(name = "TensorRT-LLM kernels on {0} in {1}: {2}")
  @CsvSource({
    "8.0, PREFILL, false",
    "8.0, DECODE, false",
    "9.0, PREFILL, false",
    "9.0, DECODE, true",
    "10.0, PREFILL, true",
    "10.3, DECODE, true",
    "11.0, DECODE, false",
    "12.0, PREFILL, false",
    "12.0, DECODE, true",
  })
  void supportedByDeviceAndPhase(String capability, Phase phase, boolean supported) {
    assertThat(FlashInferKernels.supported(on(capability, LAYER), phase)).isEqualTo(supported);
  }

  @Test
  void cubinsAndBatchInvarianceDecideFirst() {
    Deployment invariant = new Deployment(false, 1, 1, false, true, false, false, false, false);

    assertThat(FlashInferKernels.supported(on("10.0", LAYER, "no-flashinfer-cubins"), Phase.DECODE))
        .isFalse();
    assertThat(FlashInferKernels.supported(deployed(on("10.0", LAYER), invariant), Phase.DECODE))
        .isFalse();
  }

  @ParameterizedTest(name = "TensorRT-LLM kernels, rule {0}")
  @CsvSource({
    "1 forced off, 10.0, DECODE, false",
    "2 decode context parallelism, 10.0, DECODE, false",
    "3 platform, 8.0, DECODE, false",
    "5 speculative decode, 10.0, DECODE, true",
    "6 quantized queries, 10.0, PREFILL, true",
    "7 sinks, 10.0, DECODE, true",
    "8 prefill with an auto cache, 10.0, PREFILL, true",
    "8 prefill with an fp8 cache, 10.0, PREFILL, false",
    "9 decode with an fp8 cache on 9.0, 9.0, DECODE, true",
    "9 decode of few tokens, 10.0, DECODE, true",
    "9 decode of many tokens, 10.0, DECODE, false",
    "10 forced on, 10.0, DECODE, true",
  })
  void rulesOfABatch(String rule, String capability, Phase phase, boolean runs) {
    AttentionLayerSpec.Dense layer =
        rule.contains("fp8")
            ? LAYER.withKvCacheDtype(KvCacheDtype.FP8)
            : LAYER.withSinks(rule.contains("sinks"));
    AttentionRequest request =
        deployed(
            on(capability, layer),
            new Deployment(
                false,
                rule.contains("parallelism") ? 2 : 1,
                1,
                false,
                false,
                false,
                false,
                false,
                false,
                rule.contains("speculative") ? 3 : 0,
                rule.contains("forced") ? trtllm(rule.contains("on")) : KernelSettings.DEFAULT));
    boolean many = rule.contains("many") || rule.contains("forced on");

    assertThat(
            FlashInferKernels.runs(
                request, phase, many ? 300 : 256, rule.contains("quantized queries")))
        .isEqualTo(runs);
  }
}

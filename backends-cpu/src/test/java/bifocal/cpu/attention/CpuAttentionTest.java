package bifocal.cpu.attention;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.cpu.attention.Scene.Request;
import bifocal.cpu.attention.Scene.Result;
import bifocal.cpu.kernel.CpuKernels;
import bifocal.cpu.thread.CpuThreads;
import bifocal.reference.Tolerance;
import io.vavr.control.Option;
import io.vavr.control.Try;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Both backends, on every kernel of this JVM, against the reference. */
final class CpuAttentionTest {
  private static final AttentionLayerSpec.Dense CAUSAL =
      AttentionLayerSpec.Dense.decoder(8, 2, 64, DType.FP32, AttentionMask.CAUSAL);

  static Stream<CpuKernels> kernels() {
    return Stream.concat(
        Stream.of(KernelChoice.scalar(), KernelChoice.vector()),
        Try.of(KernelChoice::nativeKernels).toJavaStream());
  }

  private static AttentionBackend<CpuAttentionMetadata> cpu(CpuKernels kernels) {
    return new CpuAttnBackend(new CpuRuntime(kernels, CpuThreads.shared()));
  }

  private static AttentionBackend<CpuAttentionMetadata> flex(CpuKernels kernels) {
    return new FlexAttentionBackend(new CpuRuntime(kernels, CpuThreads.shared()));
  }

  private static void agrees(
      AttentionBackend<CpuAttentionMetadata> backend,
      AttentionLayerSpec.Dense layer,
      int blockSize,
      long seed,
      Request... requests) {
    try (Scene scene = new Scene(layer, blockSize, KvScales.ONE, seed)) {
      Result result = scene.run(backend, requests);
      assertThat(result.agreement().within(Tolerance.of(layer.dtype())))
          .as("%s, blocks of %d, seed %d: %s", layer, blockSize, seed, result.agreement())
          .isTrue();
    }
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void everyTailLengthOfABlockIsRead(CpuKernels kernels) {
    for (int seqLen = 1; seqLen <= 70; seqLen++) {
      agrees(cpu(kernels), CAUSAL, 32, seqLen, Request.of(1, seqLen), Request.of(seqLen, seqLen));
    }
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void everyDeclaredHeadSizeIsServed(CpuKernels kernels) {
    for (int headSize : new int[] {2, 6, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512}) {
      for (DType type : new DType[] {DType.FP32, DType.FP16, DType.BF16}) {
        agrees(
            cpu(kernels),
            AttentionLayerSpec.Dense.decoder(4, 2, headSize, type, AttentionMask.CAUSAL),
            16,
            headSize,
            Request.of(3, 45),
            Request.of(1, 33));
      }
    }
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void everyGroupSizeIsServed(CpuKernels kernels) {
    for (int group : new int[] {1, 2, 3, 4, 5, 6, 7, 12, 64}) {
      agrees(
          cpu(kernels),
          AttentionLayerSpec.Dense.decoder(2 * group, 2, 32, DType.FP32, AttentionMask.CAUSAL),
          16,
          group,
          Request.of(1, 50),
          Request.of(7, 40),
          Request.of(120 / group + 1, 150));
    }
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void longSequencesAreSplitOverTheirKeys(CpuKernels kernels) {
    agrees(
        cpu(kernels),
        AttentionLayerSpec.Dense.decoder(2, 1, 16, DType.FP32, AttentionMask.CAUSAL)
            .withSinks(true),
        64,
        7,
        Request.of(1, 20_000),
        Request.of(3, 9_001),
        Request.of(1, 17));
  }

  static Stream<Arguments> features() {
    return kernels()
        .flatMap(
            kernels ->
                Stream.of(
                        CAUSAL.withSoftcap(2),
                        CAUSAL.withAlibi(true),
                        CAUSAL.withSinks(true),
                        CAUSAL.withSoftcap(5).withAlibi(true).withSinks(true),
                        CAUSAL.withHeadSizeV(32),
                        CAUSAL.withScale(-0.3),
                        CAUSAL.withMask(AttentionMask.CAUSAL.withWindow(1)),
                        CAUSAL.withMask(AttentionMask.CAUSAL.withWindow(7)),
                        CAUSAL.withMask(AttentionMask.CAUSAL.withWindow(600)),
                        CAUSAL.withMask(AttentionMask.BIDIRECTIONAL),
                        CAUSAL.withMask(AttentionMask.BIDIRECTIONAL.withWindow(5)),
                        CAUSAL
                            .withMask(AttentionMask.BIDIRECTIONAL)
                            .withType(AttentionType.ENCODER_DECODER))
                    .map(layer -> Arguments.of(kernels, layer)));
  }

  @ParameterizedTest
  @MethodSource("features")
  void bothBackendsComputeEveryFeature(CpuKernels kernels, AttentionLayerSpec.Dense layer) {
    for (AttentionBackend<CpuAttentionMetadata> backend : List.of(cpu(kernels), flex(kernels))) {
      agrees(
          backend,
          layer,
          16,
          11,
          Request.of(1, 1),
          Request.of(1, 700),
          Request.of(33, 90),
          Request.of(0, 5));
    }
  }

  static Stream<Arguments> imageMasks() {
    return kernels()
        .flatMap(
            kernels ->
                Stream.of(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST, ImageMask.CLAMP_BOTH)
                    .flatMap(
                        mask ->
                            Stream.of(
                                Arguments.of(kernels, AttentionMask.CAUSAL.withImages(mask)),
                                Arguments.of(
                                    kernels,
                                    AttentionMask.CAUSAL.withWindow(9).withImages(mask)))));
  }

  @ParameterizedTest
  @MethodSource("imageMasks")
  void imagesJoinTheMaskAsDeclared(CpuKernels kernels, AttentionMask mask) {
    agrees(
        flex(kernels),
        CAUSAL.withMask(mask),
        16,
        5,
        Request.of(60, 60, 10, 25, 26, 40),
        Request.of(20, 50, 35, 44),
        Request.of(1, 50, 3, 20),
        Request.of(13, 13, 0, 12),
        Request.of(10, 60, 45, 59, 200, 210));
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void chunkedLocalQueriesSeeTheirChunk(CpuKernels kernels) {
    AttentionMask mask = new AttentionMask(true, Option.none(), ImageMask.NONE, Option.some(8));
    agrees(flex(kernels), CAUSAL.withMask(mask), 16, 3, Request.of(30, 30), Request.of(3, 19));
  }

  static Stream<Arguments> caches() {
    return kernels()
        .flatMap(
            kernels ->
                Stream.of(
                        KvCacheDtype.FLOAT32,
                        KvCacheDtype.FLOAT16,
                        KvCacheDtype.BFLOAT16,
                        KvCacheDtype.FP8_E4M3,
                        KvCacheDtype.FP8_E5M2,
                        KvCacheDtype.INT8_PER_TOKEN_HEAD,
                        KvCacheDtype.FP8_PER_TOKEN_HEAD)
                    .map(dtype -> Arguments.of(kernels, dtype)));
  }

  @ParameterizedTest
  @MethodSource("caches")
  void everyCacheTypeIsReadWithItsScales(CpuKernels kernels, KvCacheDtype dtype) {
    AttentionLayerSpec.Dense layer = CAUSAL.withKvCacheDtype(dtype);
    KvScales scales =
        dtype.perTokenHead()
            ? KvScales.ONE
            : new KvScales.PerHead(new float[] {0.5f, 0.25f}, new float[] {2f, 0.125f});
    try (Scene scene = new Scene(layer, 32, scales, 17)) {
      Result result = scene.run(cpu(kernels), Request.of(1, 77), Request.of(40, 41));
      assertThat(result.agreement().within(Tolerance.of(DType.FP32)))
          .as("%s: %s", dtype, result.agreement())
          .isTrue();
    }
  }

  @ParameterizedTest
  @MethodSource("caches")
  void whatIsWrittenIsWhatTheLayoutWrites(CpuKernels kernels, KvCacheDtype dtype) {
    for (DType type : new DType[] {DType.FP32, DType.FP16, DType.BF16}) {
      AttentionLayerSpec.Dense layer =
          AttentionLayerSpec.Dense.decoder(4, 2, 48, type, AttentionMask.CAUSAL)
              .withKvCacheDtype(dtype);
      Request[] requests = {Request.of(1, 50), Request.of(1, 31)};
      try (Scene scene = new Scene(layer, 16, KvScales.ONE, 23)) {
        KvCacheView written = scene.filledBy(cpu(kernels), requests);
        KvCacheView expected = scene.emptyCache(requests);
        float[] numbers = new float[48];
        float[] key = new float[48];
        Random again = new Random(23);
        for (int part = 0; part < 2; part++) {
          for (int r = 0; r < requests.length; r++) {
            for (int t = 0; t < requests[r].seqLen(); t++) {
              for (int head = 0; head < 2; head++) {
                for (int d = 0; d < 48; d++) {
                  numbers[d] = rounded(type, (float) again.nextGaussian());
                }
                long slot = scene.slot(requests, r, t);
                // The reader undoes what the layout did; writing the same numbers as key and value
                // leaves the part that is compared.
                expected.tokens(scene.spec.layout()).write(slot, head, numbers, numbers);
                float[] wanted = new float[48];
                if (part == 0) {
                  written.tokens(scene.spec.layout()).readKey(slot, head, key);
                  expected.tokens(scene.spec.layout()).readKey(slot, head, wanted);
                } else {
                  written.tokens(scene.spec.layout()).readValue(slot, head, key);
                  expected.tokens(scene.spec.layout()).readValue(slot, head, wanted);
                }
                assertThat(key).as("%s from %s, slot %d", dtype, type, slot).isEqualTo(wanted);
              }
            }
          }
        }
      }
    }
  }

  private static float rounded(DType type, float value) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment number = arena.allocate(Float.BYTES);
      NarrowFloats.store(number, 0, type, value);
      return NarrowFloats.load(number, 0, type);
    }
  }

  @ParameterizedTest
  @MethodSource("kernels")
  void aQueryWithoutKeysGivesZeroAndMinusInfinity(CpuKernels kernels) {
    AttentionLayerSpec.Dense layer = CAUSAL.withType(AttentionType.ENCODER_DECODER);
    try (Scene scene = new Scene(layer, 16, KvScales.ONE, 1)) {
      Result result = scene.run(cpu(kernels), Request.of(5, 2), Request.of(2, 0));
      assertThat(result.out(0, 0, 0)).isZero();
      assertThat(result.lse(0, 0)).isEqualTo(Float.NEGATIVE_INFINITY);
      assertThat(result.lse(6, 7)).isEqualTo(Float.NEGATIVE_INFINITY);
      assertThat(result.agreement().within(Tolerance.of(DType.FP32))).isTrue();
    }
  }

  @Test
  void randomBatchesAgree() {
    for (long seed = 0; seed < 40; seed++) {
      Random random = new Random(seed);
      Request[] requests = new Request[1 + random.nextInt(5)];
      for (int r = 0; r < requests.length; r++) {
        int seqLen = 1 + random.nextInt(random.nextInt(10) == 0 ? 1200 : 120);
        requests[r] =
            Request.of(random.nextBoolean() ? 1 : Math.min(seqLen, 1 + random.nextInt(60)), seqLen);
      }
      int kv = 1 + random.nextInt(3);
      AttentionLayerSpec.Dense layer =
          AttentionLayerSpec.Dense.decoder(
              kv * (1 + random.nextInt(6)),
              kv,
              16 * (1 + random.nextInt(6)),
              DType.FP32,
              random.nextBoolean()
                  ? AttentionMask.CAUSAL
                  : AttentionMask.CAUSAL.withWindow(1 + random.nextInt(100)));
      for (CpuKernels kernels : kernels().toList()) {
        agrees(cpu(kernels), layer, 16 * (1 + random.nextInt(3)), seed, requests);
      }
    }
  }
}

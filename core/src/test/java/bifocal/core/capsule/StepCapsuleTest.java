package bifocal.core.capsule;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.capsule.StepCapsule.Origin;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.safetensors.Safetensors;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.control.Option;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A decode over 3 keys and a chunk of 2 queries after 2 keys, with an image in the chunk. */
class StepCapsuleTest {
  private static final Dense LAYER =
      Dense.decoder(
          1, 1, 1, DType.FP32, AttentionMask.CAUSAL.withWindow(8).withImages(ImageMask.CLAMP_PAST));
  private static final LayerGroup GROUP = LayerGroup.of("sliding", LAYER);
  private static final KvCacheSpec SPEC =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.FLOAT32, 2, 1, 1, 1, KvScales.ONE);
  private static final Origin ORIGIN =
      new Origin("A+B", 12, "layers.3", Option.some("SPLIT"), true, false);

  private final Arena arena = Arena.ofConfined();
  private final KvCacheView cache =
      KvCacheView.wrap(arena.allocate(6 * SPEC.blockBytes(), 64), SPEC);
  @TempDir private Path folder;

  @AfterEach
  void release() {
    arena.close();
  }

  @Test
  void keysOfEarlierStepsGoAlongInTheOrderOfTheBlockTable() {
    Safetensors file = written(StepCapsule.of(GROUP, batch(), ORIGIN));
    assertThat(floats(file, "q")).containsExactly(100, 101, 102);
    assertThat(floats(file, "k")).containsExactly(6, 7, 2, 10, 11, 4, 5);
    assertThat(floats(file, "v")).containsExactly(-6, -7, -2, -10, -11, -4, -5);
    assertThat(ints(file, "query_lens")).containsExactly(1, 2);
    assertThat(ints(file, "seq_lens")).containsExactly(3, 4);
    assertThat(ints(file, "images")).containsExactly(1, 2, 3);
  }

  @Test
  void oneRequestAloneIsNumberedAnew() {
    Safetensors file = written(StepCapsule.of(GROUP, batch(), ORIGIN).only(1));
    assertThat(floats(file, "q")).containsExactly(101, 102);
    assertThat(floats(file, "k")).containsExactly(10, 11, 4, 5);
    assertThat(ints(file, "images")).containsExactly(0, 2, 3);
  }

  @Test
  void textsSayLayerCacheAndOrigin() {
    Safetensors file = written(StepCapsule.of(GROUP, batch(), ORIGIN));
    assertThat(file.metadata().toJavaMap())
        .containsEntry("causal", "true")
        .containsEntry("sliding_window", "8")
        .containsEntry("mask", "clamp_past")
        .containsEntry("scale", "1.0")
        .containsEntry("block_size", "2")
        .containsEntry("kv_cache_dtype", "auto")
        .containsEntry(
            "capsule",
            "{\"backend\":\"A+B\",\"step\":12,\"group\":\"sliding\",\"layer\":\"layers.3\","
                + "\"route\":\"SPLIT\",\"spec\":{\"layers\":{\"mask\":\"clamp_past\","
                + "\"sliding_window\":8,\"head_size\":1,\"dtype\":\"fp32\"},\"split\":true,\"lowering\":false,\"requests\":["
                + "{\"query_len\":1,\"seq_len\":3,\"images\":[]},"
                + "{\"query_len\":2,\"seq_len\":4,\"images\":[[2,3]]}]}}")
        .doesNotContainKeys("softcap", "k_scale");
  }

  @Test
  void withoutTensorsOnlyTheBatchIsWritten() {
    Path path = folder.resolve("step.safetensors");
    StepCapsule.of(GROUP, batch(), ORIGIN).write(path);
    Safetensors file = Safetensors.read(path, arena);
    assertThat(file.tensors().keySet()).containsExactly("query_lens", "seq_lens", "images");
    assertThat(Safetensors.readMetadata(path)).isEqualTo(file.metadata());
  }

  @Test
  void fileIsToldFromText() throws IOException {
    Path path = folder.resolve("step.safetensors");
    StepCapsule.of(GROUP, batch(), ORIGIN).write(path);
    Path text = folder.resolve("spec.json");
    Files.writeString(text, "{\"a\":  {\"requests\":[]}}");
    Path empty = folder.resolve("empty");
    Files.writeString(empty, "");
    assertThat(Safetensors.recognises(path)).isTrue();
    assertThat(Safetensors.recognises(text)).isFalse();
    assertThat(Safetensors.recognises(empty)).isFalse();
    assertThat(Safetensors.recognises(folder.resolve("nowhere"))).isFalse();
  }

  @Test
  void maskThatNoFileCanSayIsRefused() {
    AttentionMask chunked = new AttentionMask(true, Option.none(), ImageMask.NONE, Option.some(4));
    assertThatThrownBy(
            () ->
                StepCapsule.of(LayerGroup.of("chunked", LAYER.withMask(chunked)), batch(), ORIGIN))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNSUPPORTED));
  }

  private Safetensors written(StepCapsule capsule) {
    KvCacheView.TokenAccess tokens = cache.tokens(SPEC.layout());
    for (int slot = 2; slot < 12; slot++) {
      tokens.write(slot, 0, new float[] {slot}, new float[] {-slot});
    }
    MemorySegment q = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 100, 101, 102);
    Path path = folder.resolve("step.safetensors");
    capsule.write(path, TensorView.ofHost(q, DType.FP32, 3, 1, 1), cache, LayerParameters.NONE);
    return Safetensors.read(path, arena);
  }

  private CommonAttentionMetadata batch() {
    MemorySegment table = arena.allocateFrom(ValueLayout.JAVA_INT, 3, 1, 5, 2);
    MemorySegment slots = arena.allocateFrom(ValueLayout.JAVA_LONG, 2, 4, 5);
    return CommonAttentionMetadata.builder(
            new int[] {0, 1, 3},
            new int[] {3, 4},
            TensorView.ofHost(table, DType.INT32, 2, 2),
            new SlotMapping(TensorView.ofHost(slots, DType.INT64, 3)))
        .images(ImageRanges.of(new int[][] {{}, {2, 3}}, 2))
        .build();
  }

  private static float[] floats(Safetensors file, String name) {
    return file.tensors().get(name).get().data().toArray(ValueLayout.JAVA_FLOAT);
  }

  private static int[] ints(Safetensors file, String name) {
    return file.tensors().get(name).get().data().toArray(ValueLayout.JAVA_INT);
  }
}

package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.replay.Summary.ShadowFacts;
import bifocal.cli.replay.Summary.ShadowPlace;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.safetensors.Safetensors;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.reference.Agreement;
import bifocal.reference.QueryHead;
import bifocal.reference.ReferenceBackend;
import bifocal.reference.shadow.ShadowComparison;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is kept of comparisons, over two requests of one query each. */
class ShadowRecorderTest {
  private static final double BOUND = 0.1;
  private static final LayerGroup GROUP =
      new LayerGroup(
          "full", Dense.decoder(1, 1, 1, DType.FP32, AttentionMask.CAUSAL), Vector.of("a", "b"));
  private static final KvCacheSpec SPEC =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.FLOAT32, 2, 1, 1, 1, KvScales.ONE);

  private final Arena arena = Arena.ofConfined();
  private final KvCacheView cache =
      KvCacheView.wrap(arena.allocate(4 * SPEC.blockBytes(), 64), SPEC);
  @TempDir private Path folder;

  @AfterEach
  void release() {
    arena.close();
  }

  @Test
  void worstOfAllBatchesIsKeptAndItsRequestRecorded() {
    ShadowRecorder recorder = recorder();
    recorder.enter(0, Vector.of(3, 8));
    recorder.compared(comparison(5, 0.01, 0));
    recorder.enter(1, Vector.of(3, 8));
    recorder.compared(comparison(6, 0.05, 1));
    recorder.enter(0, Vector.of(3, 8));
    recorder.compared(comparison(7, 0.02, 0));
    ShadowFacts facts = recorder.facts(BOUND);
    assertThat(facts.within()).isTrue();
    assertThat(facts.batches()).isEqualTo(3);
    assertThat(facts.compared()).isEqualTo(6);
    assertThat(facts.at().get()).isEqualTo(new ShadowPlace(6, "full", 1, 8, 1, 0));
    Safetensors file = Safetensors.read(Path.of(facts.recorded().get()), arena);
    assertThat(file.metadata().get("capsule").get()).contains("\"step\":6", "\"layer\":\"b\"");
    assertThat(file.tensors().get("seq_lens").get().data().toArray(ValueLayout.JAVA_INT))
        .containsExactly(2);
    assertThat(file.tensors().get("q").get().data().toArray(ValueLayout.JAVA_FLOAT))
        .containsExactly(21);
  }

  @Test
  void errorPastTheBoundFails() {
    ShadowRecorder recorder = recorder();
    recorder.enter(0, Vector.of(0, 1));
    recorder.compared(comparison(0, 0.2, 0));
    assertThat(recorder.facts(BOUND).within()).isFalse();
  }

  @Test
  void batchThatTheShadowCouldNotRunFails() {
    ShadowRecorder recorder = recorder();
    recorder.enter(0, Vector.of(0, 1));
    recorder.compared(comparison(0, 0.01, 0));
    recorder.failed(1, GROUP, new IllegalStateException("broken"));
    assertThat(recorder.facts(BOUND).within()).isFalse();
    assertThat(recorder.facts(BOUND).failures()).containsExactly("step 1, group full: broken");
  }

  @Test
  void shadowThatNeverRanHasNotAgreed() {
    assertThat(recorder().facts(BOUND).within()).isFalse();
  }

  private ShadowRecorder recorder() {
    return new ShadowRecorder(
        ReferenceBackend.over(KvLayouts.NHD), ReferenceBackend.NAME, Option.some(folder));
  }

  private ShadowComparison comparison(long step, double error, int queryToken) {
    MemorySegment table = arena.allocateFrom(ValueLayout.JAVA_INT, 1, 2);
    MemorySegment slots = arena.allocateFrom(ValueLayout.JAVA_LONG, 2, 5);
    CommonAttentionMetadata batch =
        CommonAttentionMetadata.builder(
                new int[] {0, 1, 2},
                new int[] {1, 2},
                TensorView.ofHost(table, DType.INT32, 2, 1),
                new SlotMapping(TensorView.ofHost(slots, DType.INT64, 2)))
            .build();
    TensorView q =
        TensorView.ofHost(arena.allocateFrom(ValueLayout.JAVA_FLOAT, 20, 21), DType.FP32, 2, 1, 1);
    return new ShadowComparison(
        step,
        GROUP,
        batch,
        LayerParameters.NONE,
        q,
        cache,
        AttentionOutput.of(q),
        AttentionOutput.of(q),
        new Agreement(2, error, Option.some(new QueryHead(queryToken, 0)), 0, Option.none()),
        1,
        1);
  }
}

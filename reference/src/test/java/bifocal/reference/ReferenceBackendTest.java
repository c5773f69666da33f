package bifocal.reference;

import static bifocal.reference.Batches.floats;
import static bifocal.reference.Batches.ints;
import static bifocal.reference.Batches.longs;
import static bifocal.reference.Batches.shape;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** The reference run through the backend contract. */
class ReferenceBackendTest {
  private static final Dense LAYER = Dense.decoder(1, 1, 1, DType.FP32, AttentionMask.CAUSAL);
  private static final KvCacheSpec SPEC =
      new KvCacheSpec(new TwoColumns(), KvCacheDtype.FLOAT32, 2, 1, 1, 1, KvScales.ONE);

  private final Arena arena = Arena.ofConfined();
  private final LaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);
  private final KvCacheView cache =
      KvCacheView.wrap(arena.allocate(4 * SPEC.blockBytes(), 64), SPEC);
  private final AttentionImpl<ReferenceMetadata> impl =
      ReferenceBackend.over(SPEC.layout()).createImpl(LAYER, LayerParameters.NONE, SPEC);

  @AfterEach
  void release() {
    if (arena.scope().isAlive()) {
      arena.close();
    }
  }

  @Test
  void readsThroughTheBlockTableWhatWasWrittenBySlots() {
    writeThreeTokens();
    TensorView out = floats(shape(2, 1, 1), Float.NaN, Float.NaN);
    TensorView lse = floats(shape(2, 1), Float.NaN, Float.NaN);
    impl.forward(
        launch,
        floats(shape(2, 1, 1), 0, 0),
        cache,
        metadata(batch(new int[] {3, 1}, new int[] {0, 1}, 3)),
        new AttentionOutput(out, Option.some(lse)));
    assertThat(HostTensor.over(out).at(0, 0, 0)).isEqualTo(2);
    assertThat(HostTensor.over(lse).at(0, 0)).isEqualTo((float) Math.log(3));
    assertThat(HostTensor.over(out).at(1, 0, 0)).as("row of no request").isNaN();
    assertThat(HostTensor.over(lse).at(1, 0)).as("row of no request").isNaN();
  }

  @Test
  void tokensWithoutASlotAreNotWritten() {
    impl.writeKv(
        launch,
        new KvInput.Dense(floats(shape(2, 1, 1), 8, 9), floats(shape(2, 1, 1), 8, 9)),
        cache,
        new SlotMapping(longs(-1, 7)));
    float[] number = new float[1];
    cache.tokens(SPEC.layout()).readKey(7, 0, number);
    assertThat(number[0]).isEqualTo(9);
    cache.tokens(SPEC.layout()).readKey(6, 0, number);
    assertThat(number[0]).isZero();
  }

  @Test
  void wrongSlotIsRefusedBeforeAnythingIsWritten() {
    for (long slot : new long[] {8, 1, -2}) {
      assertThatThrownBy(
              () ->
                  impl.writeKv(
                      launch,
                      new KvInput.Dense(floats(shape(2, 1, 1), 8, 9), floats(shape(2, 1, 1), 8, 9)),
                      cache,
                      new SlotMapping(longs(4, slot))))
          .isInstanceOfSatisfying(
              BifocalException.class,
              e -> assertThat(e.code()).isEqualTo(ErrorCode.SLOT_OUT_OF_RANGE));
    }
    assertThat(cache.memory().mismatch(MemorySegment.ofArray(new byte[64]))).isEqualTo(-1L);
  }

  @Test
  void blockOutsideTheCacheIsRefused() {
    expect(ErrorCode.BLOCK_OUT_OF_RANGE, () -> forward(new int[] {3, 4}, 3));
    expect(ErrorCode.BLOCK_OUT_OF_RANGE, () -> forward(new int[] {-1, 1}, 3));
  }

  @Test
  void blockTableThatEndsTooSoonIsRefused() {
    expect(ErrorCode.BLOCK_TABLE_TOO_SHORT, () -> forward(new int[] {3}, 3));
  }

  @Test
  void closedCacheIsRefused() {
    arena.close();
    expect(ErrorCode.CLOSED, () -> forward(new int[] {3, 1}, 3));
  }

  @Test
  void anotherThreadIsRefused() throws InterruptedException {
    Throwable[] thrown = new Throwable[1];
    Thread thread =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    forward(new int[] {3, 1}, 3);
                  } catch (BifocalException e) {
                    thrown[0] = e;
                  }
                });
    thread.join();
    assertThat(thrown[0])
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.WRONG_THREAD));
  }

  @Test
  void cutImageIsRefusedWhenMetadataIsBuilt() {
    Dense sees = LAYER.withMask(AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE));
    LayerGroup group = LayerGroup.of("all", sees);
    CommonAttentionMetadata cut =
        Batches.of(2, 2).images(ImageRanges.of(new int[][] {{1, 2}}, 1)).build();
    try (var builder = ReferenceBackend.over(SPEC.layout()).createBuilder(group, SPEC);
        Workspace workspace = Workspace.wrap(arena.allocate(0), WorkspacePlan.NONE, 1);
        Workspace.Step step = workspace.openStep()) {
      expect(
          ErrorCode.IMAGE_CUT, () -> builder.build(new StepContext(launch, step, 0), group, cut));
    }
  }

  private void writeThreeTokens() {
    impl.writeKv(
        launch,
        new KvInput.Dense(floats(shape(3, 1, 1), 0, 0, 0), floats(shape(3, 1, 1), 1, 2, 3)),
        cache,
        new SlotMapping(longs(6, 7, 2)));
  }

  private void forward(int[] blocks, int seqLen) {
    impl.forward(
        launch,
        floats(shape(1, 1, 1), 0),
        cache,
        metadata(batch(blocks, new int[] {0, 1}, seqLen)),
        AttentionOutput.of(floats(shape(1, 1, 1), 0)));
  }

  private static ReferenceMetadata metadata(CommonAttentionMetadata batch) {
    return new ReferenceMetadata(batch);
  }

  private static CommonAttentionMetadata batch(int[] blocks, int[] starts, int... seqLens) {
    return CommonAttentionMetadata.builder(starts, seqLens, ints(blocks), new SlotMapping(longs()))
        .build();
  }

  private static void expect(ErrorCode code, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(BifocalException.class, e -> assertThat(e.code()).isEqualTo(code));
  }

  /** Keys in one column, values in the other, one number each. */
  private record TwoColumns() implements KvLayout {
    @Override
    public String name() {
      return "TWO_COLUMNS";
    }

    @Override
    public long blockBytes(KvCacheSpec spec) {
      return 8L * spec.blockSize();
    }

    @Override
    public long valueOffset(KvCacheSpec spec) {
      return 4L * spec.blockSize();
    }

    @Override
    public void write(
        KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key, float[] value) {
      block.setAtIndex(ValueLayout.JAVA_FLOAT, token, key[0]);
      block.setAtIndex(ValueLayout.JAVA_FLOAT, spec.blockSize() + token, value[0]);
    }

    @Override
    public void readKey(KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key) {
      key[0] = block.getAtIndex(ValueLayout.JAVA_FLOAT, token);
    }

    @Override
    public void readValue(
        KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] value) {
      value[0] = block.getAtIndex(ValueLayout.JAVA_FLOAT, spec.blockSize() + token);
    }
  }
}

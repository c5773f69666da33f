package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import bifocal.conformance.ValueSource.Kind;
import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.KvInput;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.device.Device;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** What is wrong is refused with a code, before anything is written and without ending the JVM. */
public interface RefusalContract extends BackendContract {
  private Declared declared() {
    return new Declared(backend(), profile());
  }

  private Setup setup() {
    return Setup.of(declared().plain(), Seeds.first());
  }

  @TestFactory
  default Stream<DynamicTest> wrongTensorsAreRefused() {
    DType other = declared().plain().dtype() == DType.BF16 ? DType.FP16 : DType.BF16;
    return Stream.of(
        wrong(
            "q of another type",
            ErrorCode.DTYPE_MISMATCH,
            (rig, at) -> at.withQ(retyped(at.q(), other))),
        wrong(
            "q with a head too few",
            ErrorCode.SHAPE_MISMATCH,
            (rig, at) -> at.withQ(fewer(at.q(), 1))),
        wrong(
            "q of a smaller head",
            ErrorCode.SHAPE_MISMATCH,
            (rig, at) -> at.withQ(fewer(at.q(), 2))),
        wrong(
            "q with too few rows",
            ErrorCode.SHAPE_MISMATCH,
            (rig, at) -> at.withQ(at.q().rows(0, 3))),
        wrong("q of another rank", ErrorCode.SHAPE_MISMATCH, (rig, at) -> at.withQ(flat(at.q()))),
        wrong(
            "q on another device",
            ErrorCode.DEVICE_MISMATCH,
            (rig, at) -> at.withQ(elsewhere(at.q()))),
        wrong(
            "out of another type",
            ErrorCode.DTYPE_MISMATCH,
            (rig, at) -> at.withOut(retyped(at.out(), DType.INT32))),
        wrong(
            "out with a head too few",
            ErrorCode.SHAPE_MISMATCH,
            (rig, at) -> at.withOut(fewer(at.out(), 1))),
        wrong(
            "out of a smaller head",
            ErrorCode.SHAPE_MISMATCH,
            (rig, at) -> at.withOut(fewer(at.out(), 2))),
        wrong(
            "out with too few rows",
            ErrorCode.SHAPE_MISMATCH,
            (rig, at) -> at.withOut(at.out().rows(0, 3))),
        wrong(
            "out on another device",
            ErrorCode.DEVICE_MISMATCH,
            (rig, at) -> at.withOut(elsewhere(at.out()))),
        wrong(
            "lse of another type",
            ErrorCode.DTYPE_MISMATCH,
            (rig, at) -> at.withLse(rig.tensors().poisoned(DType.BF16, 20, 4))),
        wrong(
            "lse with too few rows",
            ErrorCode.SHAPE_MISMATCH,
            (rig, at) -> at.withLse(rig.tensors().poisoned(DType.FP32, 3, 4))),
        wrong(
            "lse with a head too few",
            ErrorCode.SHAPE_MISMATCH,
            (rig, at) -> at.withLse(rig.tensors().poisoned(DType.FP32, 20, 3))));
  }

  /** Turns the right tensors of a step into wrong ones. */
  @FunctionalInterface
  interface Mistake {
    Arguments make(Rig<?> rig, Arguments right);
  }

  /** The tensors of a forward. */
  record Arguments(TensorView q, TensorView out, Option<TensorView> lse) {
    Arguments withQ(TensorView other) {
      return new Arguments(other, out, lse);
    }

    Arguments withOut(TensorView other) {
      return new Arguments(q, other, lse);
    }

    Arguments withLse(TensorView other) {
      return new Arguments(q, out, Option.some(other));
    }
  }

  private DynamicTest wrong(String what, ErrorCode code, Mistake mistake) {
    return Checks.test(
        what,
        () -> {
          try (Rig<?> rig = Rig.open(this, setup());
              Step<?> step = rig.build(BatchPlan.of(9, 9, 5, 40))) {
            Rig.Buffers right = rig.buffers(step.host());
            Arguments wrong =
                mistake.make(
                    rig, new Arguments(right.q(), right.output().out(), right.output().lse()));
            Rig.Buffers buffers =
                new Rig.Buffers(
                    wrong.q(),
                    right.kv(),
                    right.slots(),
                    new AttentionOutput(wrong.out(), wrong.lse()));
            Checks.refused(what, () -> step.forward(buffers), code);
            rig.outcome(step, right).requireUntouched();
          }
        });
  }

  @Test
  default void wrongUncachedKeysAndValuesAreRefused() {
    Dense layer =
        declared()
            .plain()
            .withType(AttentionType.ENCODER_ONLY)
            .withMask(AttentionMask.BIDIRECTIONAL);
    assumeTrue(declared().runs(layer), "encoders are not declared");
    try (Rig<?> rig = Rig.open(this, Setup.of(layer, Seeds.first()));
        Step<?> step = rig.build(BatchPlan.of(5, 5, 9, 9))) {
      KvInput.Dense right = rig.uncached(step.host());
      DType other = layer.dtype() == DType.BF16 ? DType.FP16 : DType.BF16;
      requireUncachedRefused(step, retyped(right.k(), other), right.v(), ErrorCode.DTYPE_MISMATCH);
      requireUncachedRefused(step, right.k(), fewer(right.v(), 1), ErrorCode.SHAPE_MISMATCH);
      requireUncachedRefused(step, right.k().rows(0, 13), right.v(), ErrorCode.SHAPE_MISMATCH);
      requireUncachedRefused(step, elsewhere(right.k()), right.v(), ErrorCode.DEVICE_MISMATCH);
    }
  }

  private static void requireUncachedRefused(
      Step<?> step, TensorView k, TensorView v, ErrorCode code) {
    Rig.Buffers buffers = step.rig().buffers(step.host());
    Checks.refused(
        "keys and values without a cache",
        () -> step.forwardUncached(buffers, new KvInput.Dense(k, v)),
        code);
    step.rig().outcome(step, buffers).requireUntouched();
  }

  @Test
  default void wrongKeysAndValuesAreRefused() {
    try (Rig<?> rig = Rig.open(this, setup())) {
      TensorView k = rig.tensors().tokens(Kind.KEY, 0, 0, 4);
      TensorView v = rig.tensors().tokens(Kind.VALUE, 0, 0, 4);
      DType other = k.dtype() == DType.BF16 ? DType.FP16 : DType.BF16;
      requireWriteRefused(rig, "k of another type", retyped(k, other), v, ErrorCode.DTYPE_MISMATCH);
      requireWriteRefused(rig, "v of another type", k, retyped(v, other), ErrorCode.DTYPE_MISMATCH);
      requireWriteRefused(rig, "k with a head too few", fewer(k, 1), v, ErrorCode.SHAPE_MISMATCH);
      requireWriteRefused(rig, "v of a smaller head", k, fewer(v, 2), ErrorCode.SHAPE_MISMATCH);
      requireWriteRefused(rig, "too few keys", k.rows(0, 2), v, ErrorCode.SHAPE_MISMATCH);
      requireWriteRefused(rig, "k on another device", elsewhere(k), v, ErrorCode.DEVICE_MISMATCH);
      requireUnwritten(rig);
    }
  }

  private static void requireWriteRefused(
      Rig<?> rig, String what, TensorView k, TensorView v, ErrorCode code) {
    long first = rig.blocks().slot(0, 0);
    Checks.refused(
        what,
        () ->
            rig.impl()
                .writeKv(
                    rig.device().launch(),
                    new KvInput.Dense(k, v),
                    rig.cache(),
                    rig.slotMapping(first, first + 1, first + 2, first + 3)),
        code);
  }

  private static void requireUnwritten(Rig<?> rig) {
    MemorySegment untouched = rig.blocks().untouched();
    MemorySegment host = rig.blocks().toHost().memory();
    long offset = rig.blocks().of(0)[0] * rig.spec().blockBytes();
    assertThat(host.asSlice(offset, rig.spec().blockBytes()).mismatch(untouched))
        .as("first byte of the block that a refused write changed")
        .isEqualTo(-1);
  }

  /** Tables in host memory are checked before they are followed. */
  @Test
  default void slotsOutsideTheCacheAreRefused() {
    try (Rig<?> rig = Rig.open(this, setup())) {
      assumeTrue(rig.device().device().hostReadable(), "slots are not the host's to read");
      TensorView k = rig.tensors().tokens(Kind.KEY, 0, 0, 2);
      TensorView v = rig.tensors().tokens(Kind.VALUE, 0, 0, 2);
      long end = (long) rig.cache().numBlocks() * rig.spec().blockSize();
      for (long slot : new long[] {end, Long.MAX_VALUE, -2, Long.MIN_VALUE}) {
        Checks.refused(
            "slot " + slot,
            () ->
                rig.impl()
                    .writeKv(
                        rig.device().launch(),
                        new KvInput.Dense(k, v),
                        rig.cache(),
                        rig.slotMapping(rig.blocks().slot(0, 0), slot)),
            ErrorCode.SLOT_OUT_OF_RANGE);
      }
      requireUnwritten(rig);
    }
  }

  @Test
  default void blocksOutsideTheCacheAreRefused() {
    try (Rig<?> rig = Rig.open(this, setup())) {
      assumeTrue(rig.device().device().hostReadable(), "block tables are not the host's to read");
      for (int block : new int[] {rig.cache().numBlocks(), Integer.MAX_VALUE, -1}) {
        requireRunRefused(rig, table -> replaced(table, block), ErrorCode.BLOCK_OUT_OF_RANGE);
      }
    }
  }

  @Test
  default void blockTableThatEndsTooSoonIsRefused() {
    try (Rig<?> rig = Rig.open(this, setup())) {
      requireRunRefused(
          rig,
          table -> TensorView.of(table.data(), DType.INT32, table.device(), table.size(0), 1),
          ErrorCode.BLOCK_TABLE_TOO_SHORT);
    }
  }

  private static TensorView replaced(TensorView table, int block) {
    table.data().set(ValueLayout.JAVA_INT_UNALIGNED, table.stride(0) * Integer.BYTES, block);
    return table;
  }

  /** Builds and runs a batch over another block table; one of the two must refuse. */
  private static void requireRunRefused(
      Rig<?> rig, UnaryOperator<TensorView> change, ErrorCode code) {
    BatchPlan plan = BatchPlan.of(1, 5, 1, 2 * rig.spec().blockSize() + 5);
    Checks.refused(
        "block table",
        () ->
            rig.run(
                plan,
                new int[] {0, 1},
                whole -> withTable(whole, change.apply(whole.blockTable()))),
        code);
  }

  private static CommonAttentionMetadata withTable(
      CommonAttentionMetadata whole, TensorView table) {
    int[] starts = new int[whole.live() + 1];
    int[] seqLens = new int[whole.live()];
    for (int r = 0; r < whole.live(); r++) {
      starts[r] = whole.queryStart(r);
      starts[r + 1] = starts[r] + whole.queryLen(r);
      seqLens[r] = whole.seqLen(r);
    }
    return CommonAttentionMetadata.builder(starts, seqLens, table, whole.slots()).build();
  }

  @Test
  default void cutImagesAreRefusedWhenMetadataIsBuilt() {
    for (ImageMask mode : declared().imageMasks()) {
      Dense layer = declared().plain().withMask(AttentionMask.CAUSAL.withImages(mode));
      try (Rig<?> rig = Rig.open(this, Setup.of(layer, Seeds.first()))) {
        Checks.refused(
            "an image that the step cuts",
            () -> rig.build(BatchPlan.withImages(20, 20, 10, 25)),
            ErrorCode.IMAGE_CUT);
        Checks.refused(
            "an image that ends before it begins",
            () -> rig.build(BatchPlan.withImages(20, 20, 10, 5)),
            ErrorCode.IMAGE_REVERSED);
        Checks.refused(
            "images that overlap",
            () -> rig.build(BatchPlan.withImages(20, 20, 4, 8, 8, 12)),
            ErrorCode.IMAGE_OVERLAP);
        rig.run(BatchPlan.withImages(20, 20, 4, 8)).requireRight();
      }
    }
  }

  @Test
  default void closedCacheIsRefused() {
    try (TestDevice probe = openDevice()) {
      assumeTrue(probe.device().equals(Device.HOST), "memory is not the host's");
    }
    try (Rig<?> rig = Rig.open(this, setup());
        Step<?> step = rig.build(BatchPlan.of(9, 9))) {
      ClosedCache closed = ClosedCache.like(rig.cache());
      Rig.Buffers buffers = rig.buffers(step.host());
      Checks.refused(
          "writing a closed cache",
          () ->
              rig.impl()
                  .writeKv(rig.device().launch(), buffers.kv(), closed.view(), buffers.slots()),
          ErrorCode.CLOSED);
      Checks.refused(
          "reading a closed cache", () -> step.forward(buffers, closed.view()), ErrorCode.CLOSED);
      rig.outcome(step, buffers).requireUntouched();
    }
  }

  @Test
  default void anotherThreadIsRefused() throws InterruptedException {
    try (Rig<?> rig = Rig.open(this, setup().withStepsInFlight(2));
        Step<?> step = rig.build(BatchPlan.of(9, 9))) {
      Rig.Buffers buffers = rig.buffers(step.host());
      requireRefusedElsewhere(() -> step.forward(buffers));
      requireRefusedElsewhere(() -> rig.build(BatchPlan.of(0, 0)).close());
      requireRefusedElsewhere(
          () ->
              rig.impl()
                  .writeKv(rig.device().launch(), buffers.kv(), rig.cache(), buffers.slots()));
      rig.outcome(step, buffers).requireUntouched();
    }
  }

  private static void requireRefusedElsewhere(Runnable call) throws InterruptedException {
    Throwable[] thrown = new Throwable[1];
    Thread thread =
        Thread.ofPlatform()
            .name("stranger")
            .start(
                () -> {
                  try {
                    call.run();
                  } catch (Throwable t) {
                    thrown[0] = t;
                  }
                });
    thread.join();
    assertThat(thrown[0])
        .as("a call from another thread")
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.WRONG_THREAD));
  }

  @Test
  default void closingTwiceIsHarmless() {
    Dense layer = declared().plain();
    try (Rig<?> rig = Rig.open(this, Setup.of(layer, Seeds.first()))) {
      rig.run(BatchPlan.of(3, 3)).requireRight();
      rig.impl().close();
    }
  }

  private static TensorView retyped(TensorView tensor, DType type) {
    long bytes = tensor.elements() * type.bytes();
    return bytes <= tensor.data().byteSize()
        ? TensorView.of(tensor.data(), type, tensor.device(), tensor.shape())
        : TensorView.of(
            tensor.data(), type, tensor.device(), tensor.shape(), new long[tensor.rank()]);
  }

  private static TensorView fewer(TensorView tensor, int dimension) {
    long[] shape = tensor.shape();
    shape[dimension]--;
    return TensorView.of(tensor.data(), tensor.dtype(), tensor.device(), shape);
  }

  private static TensorView flat(TensorView tensor) {
    return TensorView.of(
        tensor.data(),
        tensor.dtype(),
        tensor.device(),
        tensor.size(0),
        tensor.size(1) * tensor.size(2));
  }

  private static TensorView elsewhere(TensorView tensor) {
    Device other =
        tensor.device().platform() == Platform.XPU
            ? new Device(Platform.CUDA, 7)
            : new Device(Platform.XPU, 7);
    return TensorView.of(tensor.data(), tensor.dtype(), other, tensor.shape());
  }
}

package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import bifocal.conformance.ValueSource.Kind;
import bifocal.conformance.ffi.GuardPages;
import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.KvInput;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.cache.KvScales;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.tensor.TensorView;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** The cache: what is written where, and what is read from where. */
public interface CacheContract extends BackendContract {
  private Declared declared() {
    return new Declared(backend(), profile());
  }

  /** The layout's own reader finds every token where the slots say, and nothing else changed. */
  @TestFactory
  default Stream<DynamicTest> writesWhatTheSlotsSayAndNothingElse() {
    return Checks.forEach(
        this,
        declared().dtypes().map(declared()::plain),
        layer -> {
          try (Rig<?> rig = Rig.open(this, Setup.of(layer, Seeds.first()).withRoom(3, 50))) {
            rig.writeTokens(0, 3, 39);
            rig.writeTokens(2, 17, 18);
            requireTokens(rig);
          }
        });
  }

  private static void requireTokens(Rig<?> rig) {
    KvCacheView host = rig.blocks().toHost();
    assertThat(
            Tensors.isZero(rig.device(), rig.cache().memory().asSlice(0, rig.spec().blockBytes())))
        .as("the null block is zero")
        .isTrue();
    for (int sequence = 0; sequence < 3; sequence++) {
      for (int position = 0; position < 50; position++) {
        boolean written =
            (sequence == 0 && position >= 3 && position < 39) || (sequence == 2 && position == 17);
        requireToken(rig, host, sequence, position, written);
      }
    }
  }

  private static void requireToken(
      Rig<?> rig, KvCacheView host, int sequence, int position, boolean written) {
    KvCacheSpec spec = rig.spec();
    float[] seen = new float[spec.headSize()];
    float[] before = new float[spec.headSize()];
    int inBlock = position % spec.blockSize();
    MemorySegment untouched = rig.blocks().untouched();
    for (int head = 0; head < spec.numKvHeads(); head++) {
      host.tokens(spec.layout()).readKey(rig.blocks().slot(sequence, position), head, seen);
      spec.layout().readKey(spec, untouched, inBlock, head, before);
      for (int d = 0; d < seen.length; d++) {
        float wanted =
            written ? rig.tensors().number(Kind.KEY, sequence, position, head, d) : before[d];
        assertThat(seen[d])
            .as("key of sequence %d, position %d, head %d, element %d", sequence, position, head, d)
            .isEqualTo(wanted);
      }
    }
  }

  /** The order of a sequence's blocks in memory means nothing. */
  @Test
  default void orderOfBlocksInMemoryChangesNothing() {
    Dense layer = declared().plain();
    BatchPlan batch = BatchPlan.of(37, 90, 1, 77);
    Setup setup = Setup.of(layer, Seeds.first());
    try (Rig<?> ordered = Rig.open(this, setup.withOrderedBlocks());
        Rig<?> shuffled = Rig.open(this, setup)) {
      shuffled.run(batch).requireSameBitsAs(ordered.run(batch));
    }
  }

  /** Blocks more than 2^31 elements apart, in address space that takes no memory. */
  @TestFactory
  default Stream<DynamicTest> offsetsBeyondTwoToTheThirtyOne() {
    return Checks.forEach(
        this,
        everyTypeOfCache(),
        layer -> {
          KvCacheSpec spec = cacheSpec(layer, Option.none(), KvScales.ONE);
          long stride = (1L << 31) * layer.dtype().bytes() + 4096;
          far(
              Setup.of(layer, Seeds.first())
                  .withRoom(2, 2 * spec.blockSize())
                  .withBlockStride(stride),
              spec.blockSize());
        });
  }

  /** Blocks back to back, of which those before the last 2^31 elements are never used. */
  @TestFactory
  default Stream<DynamicTest> numbersOfBlocksBeyondTwoToTheThirtyOneElements() {
    return Checks.forEach(
        this,
        everyTypeOfCache(),
        layer -> {
          KvCacheSpec spec = cacheSpec(layer, Option.none(), KvScales.ONE);
          // A number with many bits set, so that one that is cut anywhere is another block.
          long first = (1L << 32) / spec.blockBytes() * layer.dtype().bytes() + 0x5555;
          far(
              Setup.of(layer, Seeds.first())
                  .withRoom(2, 2 * spec.blockSize())
                  .withBlocksFrom(Math.toIntExact(first), spec.blockBytes()),
              spec.blockSize());
        });
  }

  private void far(Setup setup, int blockSize) {
    assumeTrue(GuardPages.available(), "no address space can be reserved here");
    assumeTrue(onHost(), "memory is not the host's");
    try {
      Checks.agrees(this, setup, BatchPlan.of(blockSize + 3, 2 * blockSize, 1, 2 * blockSize - 1));
    } catch (BifocalException e) {
      assertThat(e.code()).as(e.getMessage()).isEqualTo(ErrorCode.UNSUPPORTED);
    }
  }

  /** Plain layers of every type, and those whose cache has another type than its queries. */
  private Seq<Dense> everyTypeOfCache() {
    return declared()
        .dtypes()
        .flatMap(
            dtype ->
                Vector.ofAll(declared().features().kvCacheDtypes())
                    .filter(cache -> cache == KvCacheDtype.AUTO || cache.elementType().isDefined())
                    .map(cache -> declared().plain(dtype).withKvCacheDtype(cache)));
  }

  private boolean onHost() {
    try (TestDevice device = openDevice()) {
      return device.device().equals(Device.HOST);
    }
  }

  /** Tensors that end where access ends: one byte read too far ends the JVM. */
  @TestFactory
  default Stream<DynamicTest> readsNothingBehindItsTensors() {
    return Checks.forEach(
        this,
        declared().dtypes().map(declared()::plain),
        layer -> {
          assumeTrue(GuardPages.available(), "pages cannot be protected here");
          try (Rig<?> rig =
              Rig.open(this, Setup.of(layer, Seeds.first()).withRoom(3, 36).withGuardPages())) {
            for (int length = 1; length <= 34; length++) {
              rig.run(BatchPlan.of(length, length, 1, length, Math.min(3, length), length))
                  .requireRight();
            }
          }
        });
  }

  @Test
  default void cacheOfAnotherContractIsRefused() {
    Dense layer = declared().plain();
    try (Rig<?> rig = Rig.open(this, Setup.of(layer, Seeds.first()))) {
      KvCacheSpec spec = rig.spec();
      KvCacheSpec other =
          new KvCacheSpec(
              spec.layout(),
              spec.dtype(),
              spec.blockSize() * 2,
              spec.numKvHeads(),
              spec.headSize(),
              spec.headSizeV(),
              spec.scales());
      KvCacheView wrong =
          KvCacheView.wrap(
              rig.device().allocate(3 * other.blockBytes()),
              other,
              rig.device().device(),
              3,
              other.blockBytes());
      TensorView k = rig.tensors().tokens(Kind.KEY, 0, 0, 1);
      TensorView v = rig.tensors().tokens(Kind.VALUE, 0, 0, 1);
      Checks.refused(
          "writing a cache of another contract",
          () ->
              rig.impl()
                  .writeKv(
                      rig.device().launch(),
                      new KvInput.Dense(k, v),
                      wrong,
                      rig.slotMapping(2L * other.blockSize())),
          ErrorCode.KV_INCOMPATIBLE);
      try (Step<?> step = rig.build(BatchPlan.of(1, 3))) {
        Rig.Buffers buffers = rig.buffers(step.host());
        Checks.refused(
            "reading a cache of another contract",
            () -> step.forward(buffers, wrong),
            ErrorCode.KV_INCOMPATIBLE);
        rig.outcome(step, buffers).requireUntouched();
      }
    }
  }
}

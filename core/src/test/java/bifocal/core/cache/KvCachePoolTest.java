package bifocal.core.cache;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import bifocal.core.device.Device;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Vector;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.channels.Pipe;
import org.junit.jupiter.api.Test;

class KvCachePoolTest {
  private static final KvCacheSpec SLIDING =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.BFLOAT16, 16, 2, 8, 8, KvScales.ONE);
  private static final KvCacheSpec FULL =
      new KvCacheSpec(KvLayouts.HND, KvCacheDtype.FLOAT32, 32, 1, 4, 6, KvScales.ONE);
  private static final KvCachePool.Group ONE =
      new KvCachePool.Group("sliding", Vector.of("layer.0", "layer.1"), SLIDING, 5);
  private static final KvCachePool.Group OTHER =
      new KvCachePool.Group("full", Vector.of("layer.2"), FULL, 3);

  @Test
  void layersOfAllGroupsLieInOneSlabWithoutOverlap() {
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(ONE, OTHER))) {
      KvCacheView first = pool.group("sliding").view("layer.0");
      KvCacheView second = pool.group("sliding").view("layer.1");
      KvCacheView third = pool.group("full").view("layer.2");
      long start = first.memory().address();
      assertThat(start % KvCachePool.ALIGNMENT).isZero();
      assertThat(second.memory().address() - start)
          .isGreaterThanOrEqualTo(5 * SLIDING.blockBytes())
          .isEqualTo(first.memory().byteSize());
      assertThat(third.memory().address()).isEqualTo(start + 2 * first.memory().byteSize());
      assertThat(third.memory().byteSize() + 2 * first.memory().byteSize())
          .isEqualTo(KvCachePool.bytes(Vector.of(ONE, OTHER)));
      assertThat(third.numBlocks()).isEqualTo(3);
      assertThat(third.spec()).isEqualTo(FULL);
    }
  }

  @Test
  void theNullBlockIsNeverLeased() {
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(ONE))) {
      BlockLease all = pool.group("sliding").lease(4);
      assertThat(new int[] {all.block(0), all.block(1), all.block(2), all.block(3)})
          .containsExactly(1, 2, 3, 4);
      assertThat(pool.group("sliding").free()).isZero();
    }
  }

  @Test
  void exhaustionLeasesNothing() {
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(ONE))) {
      KvBlocks blocks = pool.group("sliding");
      BlockLease held = blocks.lease(2);
      assertRefused(ErrorCode.POOL_EXHAUSTED, () -> blocks.lease(3)).contains("2").contains("3");
      assertRefused(ErrorCode.POOL_EXHAUSTED, () -> held.extend(3));
      assertThat(blocks.free()).isEqualTo(2);
      assertThat(held.size()).isEqualTo(2);
      held.extend(2);
      assertThat(blocks.free()).isZero();
    }
  }

  @Test
  void groupsHaveBlocksOfTheirOwn() {
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(ONE, OTHER))) {
      pool.group("sliding").lease(4);
      assertThat(pool.group("full").lease(2).block(0)).isEqualTo(1);
    }
  }

  @Test
  void aBlockIsFreeWhenItsLastHolderGivesItBack() {
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(ONE))) {
      KvBlocks blocks = pool.group("sliding");
      BlockLease first = blocks.lease(3);
      BlockLease second = first.retain();
      assertThat(first.shared(1)).isTrue();
      first.close();
      assertThat(blocks.free()).isEqualTo(1);
      assertThat(second.shared(1)).isFalse();
      second.close();
      assertThat(blocks.free()).isEqualTo(4);
    }
  }

  @Test
  void closingALeaseTwiceGivesNothingAwayThatOthersHold() {
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(ONE))) {
      KvBlocks blocks = pool.group("sliding");
      BlockLease first = blocks.lease(1);
      BlockLease second = first.retain();
      first.close();
      first.close();
      assertThat(blocks.free()).isEqualTo(3);
      assertThat(second.block(0)).isEqualTo(1);
    }
  }

  @Test
  void aBlockThatWasUsedBeforeIsLeasedFullOfZeros() {
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(ONE))) {
      KvBlocks blocks = pool.group("sliding");
      try (BlockLease lease = blocks.lease(1)) {
        for (String layer : new String[] {"layer.0", "layer.1"}) {
          record(blocks.view(layer), lease.block(0)).fill((byte) 0xFF);
        }
      }
      BlockLease again = blocks.lease(1);
      assertThat(again.block(0)).isEqualTo(1);
      for (String layer : new String[] {"layer.0", "layer.1"}) {
        assertThat(record(blocks.view(layer), 1).toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
      }
    }
  }

  @Test
  void aSharedBlockIsCopiedInEveryLayerBeforeOneHolderWritesIt() {
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(ONE))) {
      KvBlocks blocks = pool.group("sliding");
      BlockLease first = blocks.lease(2);
      for (String layer : new String[] {"layer.0", "layer.1"}) {
        record(blocks.view(layer), first.block(1)).fill((byte) 0x3C);
      }
      BlockLease second = first.retain();
      int own = second.writable(1);
      assertThat(own).isEqualTo(3).isEqualTo(second.block(1));
      assertThat(first.block(1)).isEqualTo(2);
      assertThat(second.block(0)).isEqualTo(first.block(0));
      for (String layer : new String[] {"layer.0", "layer.1"}) {
        assertThat(record(blocks.view(layer), own).toArray(ValueLayout.JAVA_BYTE))
            .containsOnly(0x3C);
      }
      assertThat(first.writable(1)).as("nobody else holds it any more").isEqualTo(2);
    }
  }

  @Test
  void aCopyWithoutAFreeBlockChangesNothing() {
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(ONE))) {
      BlockLease first = pool.group("sliding").lease(4);
      BlockLease second = first.retain();
      assertRefused(ErrorCode.POOL_EXHAUSTED, () -> second.writable(2));
      assertThat(second.block(2)).isEqualTo(first.block(2));
      assertThat(first.shared(2)).isTrue();
    }
  }

  @Test
  void aHostsMemoryIsClearedWhereItIsHandedOutAndStaysTheHosts() {
    try (Arena host = Arena.ofConfined()) {
      MemorySegment memory = host.allocate(KvCachePool.bytes(Vector.of(ONE)), 256);
      memory.fill((byte) 0xFF);
      KvCachePool pool = KvCachePool.over(memory, Device.HOST, BlockMemory.HOST, Vector.of(ONE));
      KvCacheView view = pool.group("sliding").view("layer.1");
      assertThat(record(view, 0).toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
      int block = pool.group("sliding").lease(1).block(0);
      assertThat(record(view, block).toArray(ValueLayout.JAVA_BYTE)).containsOnly(0);
      pool.close();
      assertThat(memory.get(ValueLayout.JAVA_BYTE, 0)).isZero();
    }
  }

  @Test
  void aHostsMemoryMustHoldAllGroups() {
    MemorySegment small = MemorySegment.ofArray(new byte[100]);
    assertRefused(
        ErrorCode.MEMORY_TOO_SMALL,
        () -> KvCachePool.over(small, Device.HOST, BlockMemory.HOST, Vector.of(ONE)));
  }

  @Test
  void afterCloseEverythingIsRefused() {
    KvCachePool pool = KvCachePool.allocate(Vector.of(ONE));
    KvBlocks blocks = pool.group("sliding");
    KvCacheView view = blocks.view("layer.0");
    BlockLease lease = blocks.lease(1);
    pool.close();
    assertRefused(ErrorCode.CLOSED, () -> pool.group("sliding"));
    assertRefused(ErrorCode.CLOSED, () -> blocks.lease(1));
    assertRefused(ErrorCode.CLOSED, () -> blocks.view("layer.0"));
    assertRefused(ErrorCode.CLOSED, () -> lease.block(0));
    assertRefused(ErrorCode.CLOSED, lease::retain);
    assertRefused(ErrorCode.CLOSED, view::requireOpen);
    assertRefused(ErrorCode.CLOSED, () -> view.tokens(KvLayouts.NHD).readKey(16, 0, new float[8]));
  }

  @Test
  void closingTwiceAndClosingLeasesLateAreHarmless() {
    KvCachePool pool = KvCachePool.allocate(Vector.of(ONE));
    BlockLease lease = pool.group("sliding").lease(1);
    pool.close();
    assertThatCode(pool::close).doesNotThrowAnyException();
    assertThatCode(lease::close).doesNotThrowAnyException();
  }

  @Test
  void memoryThatANativeCallStillReadsIsNotReleasedUnderIt() throws Exception {
    KvCachePool pool =
        KvCachePool.allocate(
            Vector.of(new KvCachePool.Group("large", Vector.of("layer"), SLIDING, 2_000)));
    ByteBuffer memory = pool.group("large").view("layer").memory().asByteBuffer();
    Pipe pipe = Pipe.open();
    Thread step = Thread.ofPlatform().start(() -> writeAll(pipe, memory));
    drain(pipe, 1);
    // The pipe is full before the pool's memory ends, so the write is under way until it is read.
    assertRefused(ErrorCode.IN_USE, pool::close).contains("step");
    assertRefused(ErrorCode.CLOSED, () -> pool.group("large"));
    drain(pipe, memory.capacity() - 1);
    step.join();
    assertThatCode(pool::close).doesNotThrowAnyException();
    assertThatCode(pool::close).doesNotThrowAnyException();
  }

  @Test
  void openingAndClosingAtOnceIsHarmless() {
    assertThatCode(() -> KvCachePool.allocate(Vector.of(ONE)).close()).doesNotThrowAnyException();
  }

  @Test
  void unknownNamesAreRefusedWithTheKnownOnes() {
    try (KvCachePool pool = KvCachePool.allocate(Vector.of(ONE, OTHER))) {
      assertRefused(ErrorCode.INVALID_PARAMETER, () -> pool.group("windowed"))
          .contains("windowed")
          .contains("sliding, full");
      assertRefused(ErrorCode.INVALID_PARAMETER, () -> pool.group("full").view("layer.0"))
          .contains("layer.2");
    }
  }

  @Test
  void aPoolWithoutALeasableBlockOrWithTwinsIsRefused() {
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () -> new KvCachePool.Group("sliding", Vector.of("layer.0"), SLIDING, 1));
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () -> new KvCachePool.Group("sliding", Vector.of("a", "a"), SLIDING, 2));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> KvCachePool.bytes(Vector.of(ONE, ONE)));
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> KvCachePool.bytes(Vector.empty()));
  }

  @Test
  void sizesBeyondALongAreRefused() {
    KvCacheSpec huge =
        new KvCacheSpec(
            KvLayouts.NHD, KvCacheDtype.FLOAT32, 1 << 20, 1 << 10, 1 << 10, 1 << 10, KvScales.ONE);
    assertRefused(
        ErrorCode.OVERFLOW,
        () ->
            KvCachePool.bytes(
                Vector.of(new KvCachePool.Group("huge", Vector.of("a"), huge, Integer.MAX_VALUE))));
  }

  private static void writeAll(Pipe pipe, ByteBuffer memory) {
    try {
      while (memory.hasRemaining()) {
        pipe.sink().write(memory);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void drain(Pipe pipe, int bytes) throws IOException {
    ByteBuffer rest = ByteBuffer.allocate(bytes);
    while (rest.hasRemaining()) {
      pipe.source().read(rest);
    }
  }

  private static MemorySegment record(KvCacheView view, int block) {
    return view.memory().asSlice(view.blockOffset(block), view.spec().blockBytes());
  }
}

package bifocal.core.cache;

import static bifocal.core.error.Refusals.assertRefused;
import static java.nio.file.StandardOpenOption.CREATE_NEW;
import static java.nio.file.StandardOpenOption.READ;
import static java.nio.file.StandardOpenOption.SPARSE;
import static java.nio.file.StandardOpenOption.WRITE;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.device.Device;
import bifocal.core.device.Platform;
import bifocal.core.error.ErrorCode;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class KvCacheViewTest {
  /** 8 KV heads of 128 elements, blocks of 16 tokens: 32,768 elements with K and V. */
  private static final KvCacheSpec SPEC =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.BFLOAT16, 16, 8, 128, 128, KvScales.ONE);

  @Test
  void blocksBeyondTwoToThe31ElementsAreReached(@TempDir Path folder) throws IOException {
    int blocks = 65_538;
    long stride = SPEC.blockBytes();
    assertThat(stride).isEqualTo(32_768 * 2);
    try (Arena arena = Arena.ofShared();
        FileChannel file =
            FileChannel.open(folder.resolve("sparse"), CREATE_NEW, SPARSE, READ, WRITE)) {
      MemorySegment memory = file.map(FileChannel.MapMode.READ_WRITE, 0, blocks * stride, arena);
      KvCacheView view = KvCacheView.wrap(memory, SPEC);
      assertThat(view.numBlocks()).isEqualTo(blocks);
      assertThat(view.blockOffset(65_536)).isEqualTo(2_147_483_648L * 2);
      for (int block : new int[] {65_535, 65_536, 65_537}) {
        view.tokens(KvLayouts.NHD).write(16L * block + 15, 7, numbers(block), numbers(-block));
      }
      for (int block : new int[] {65_535, 65_536, 65_537}) {
        float[] value = new float[128];
        view.tokens(KvLayouts.NHD).readValue(16L * block + 15, 7, value);
        assertThat(value).containsExactly(numbers(-block));
      }
      float[] first = new float[128];
      view.tokens(KvLayouts.NHD).readKey(15, 7, first);
      assertThat(first).as("nothing wrapped around to the first block").containsOnly(0);
    }
  }

  @Test
  void aLargeStrideBetweenFewBlocksIsCountedInLongs(@TempDir Path folder) throws IOException {
    long stride = 3L << 30;
    try (Arena arena = Arena.ofShared();
        FileChannel file =
            FileChannel.open(folder.resolve("sparse"), CREATE_NEW, SPARSE, READ, WRITE)) {
      MemorySegment memory =
          file.map(FileChannel.MapMode.READ_WRITE, 0, 2 * stride + SPEC.blockBytes(), arena);
      KvCacheView view = KvCacheView.wrap(memory, SPEC, Device.HOST, 3, stride);
      view.tokens(KvLayouts.NHD).write(32, 0, numbers(2), numbers(3));
      float[] key = new float[128];
      SPEC.layout().readKey(SPEC, memory.asSlice(6_442_450_944L, SPEC.blockBytes()), 0, 0, key);
      assertThat(key).containsExactly(numbers(2));
    }
  }

  @Test
  void blocksAndSlotsOutsideAreRefused() {
    KvCacheView view = KvCacheView.wrap(MemorySegment.ofArray(new byte[2 * 65536]), SPEC);
    assertRefused(ErrorCode.BLOCK_OUT_OF_RANGE, () -> view.blockOffset(2)).contains("0..1");
    assertRefused(ErrorCode.BLOCK_OUT_OF_RANGE, () -> view.blockOffset(-1));
    KvCacheView.TokenAccess tokens = view.tokens(KvLayouts.NHD);
    assertRefused(ErrorCode.SLOT_OUT_OF_RANGE, () -> tokens.readKey(32, 0, new float[128]));
    assertRefused(ErrorCode.SLOT_OUT_OF_RANGE, () -> tokens.readKey(-1, 0, new float[128]));
    assertRefused(
        ErrorCode.SLOT_OUT_OF_RANGE, () -> tokens.readKey(Long.MAX_VALUE, 0, new float[128]));
  }

  @Test
  void headsAndRowsOfAnotherSizeAreRefused() {
    KvCacheView view = KvCacheView.wrap(MemorySegment.ofArray(new byte[2 * 65536]), SPEC);
    KvCacheView.TokenAccess tokens = view.tokens(KvLayouts.NHD);
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> tokens.readKey(0, 8, new float[128]));
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> tokens.readKey(0, -1, new float[128]));
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> tokens.readValue(0, 0, new float[127]));
    assertRefused(
        ErrorCode.SHAPE_MISMATCH, () -> tokens.write(0, 0, new float[128], new float[64]));
  }

  @Test
  void memoryThatIsTooSmallIsRefusedWithBothSizes() {
    MemorySegment memory = MemorySegment.ofArray(new byte[3 * 65536 - 1]);
    assertRefused(
            ErrorCode.MEMORY_TOO_SMALL, () -> KvCacheView.wrap(memory, SPEC, Device.HOST, 3, 65536))
        .contains("196607")
        .contains("196608");
    assertRefused(
        ErrorCode.INVALID_PARAMETER,
        () -> KvCacheView.wrap(MemorySegment.ofArray(new byte[10]), SPEC));
  }

  @Test
  void stridesThatOverlapOrOverflowAreRefused() {
    MemorySegment memory = MemorySegment.ofArray(new byte[65536]);
    assertRefused(
        ErrorCode.INVALID_PARAMETER, () -> KvCacheView.wrap(memory, SPEC, Device.HOST, 1, 65535));
    assertRefused(
        ErrorCode.OVERFLOW,
        () -> KvCacheView.wrap(memory, SPEC, Device.HOST, 4, Long.MAX_VALUE / 2));
  }

  @Test
  void onlyTheContractsLayoutReadsTheCache() {
    KvCacheView view = KvCacheView.wrap(MemorySegment.ofArray(new byte[65536]), SPEC);
    assertRefused(ErrorCode.KV_INCOMPATIBLE, () -> view.tokens(KvLayouts.HND))
        .contains("NHD")
        .contains("HND");
  }

  @Test
  void memoryThatTheHostCannotReadIsNotTouched() {
    KvCacheView view =
        KvCacheView.wrap(
            MemorySegment.ofArray(new byte[65536]), SPEC, new Device(Platform.CUDA, 0), 1, 65536);
    assertRefused(ErrorCode.DEVICE_MISMATCH, () -> view.tokens(KvLayouts.NHD));
  }

  private static float[] numbers(int first) {
    float[] numbers = new float[128];
    for (int i = 0; i < numbers.length; i++) {
      numbers[i] = (first + i) % 128;
    }
    return numbers;
  }
}

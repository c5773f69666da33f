package bifocal.core.cache;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.device.Device;
import bifocal.core.device.Platform;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

class PageTableTest {
  private static final PageTable EIGHTHS = new PageTable(256, 32);

  @Test
  void aPageOf256TokensHoldsEightKernelBlocksOf32() {
    assertThat(EIGHTHS.blocksPerPage()).isEqualTo(8);
    int[] blocks = new int[16];
    EIGHTHS.expand(table(1, new int[] {3, 0}), table(1, blocks), 1);
    assertThat(blocks).containsExactly(24, 25, 26, 27, 28, 29, 30, 31, 0, 1, 2, 3, 4, 5, 6, 7);
  }

  @Test
  void aSlotIsTheSameNumberInBothTables() {
    int page = 3;
    int place = 77;
    int[] blocks = new int[8];
    EIGHTHS.expand(table(1, new int[] {page}), table(1, blocks), 1);
    assertThat(blocks[place / 32] * 32 + place % 32).isEqualTo(page * 256 + place);
  }

  @Test
  void rowsBeyondTheAskedOnesAreLeftAlone() {
    int[] blocks = {9, 9, 9, 9};
    new PageTable(64, 32).expand(table(2, new int[] {1, -7}), table(2, blocks), 1);
    assertThat(blocks).containsExactly(2, 3, 9, 9);
  }

  @Test
  void aKernelBlockMustDivideThePage() {
    assertRefused(ErrorCode.KV_INCOMPATIBLE, () -> new PageTable(48, 64));
    assertRefused(ErrorCode.KV_INCOMPATIBLE, () -> new PageTable(48, 32));
    assertRefused(ErrorCode.KV_INCOMPATIBLE, () -> new PageTable(48, 0));
  }

  @Test
  void tablesThatDoNotFitAreRefused() {
    assertRefused(
        ErrorCode.SHAPE_MISMATCH,
        () -> EIGHTHS.expand(table(1, new int[2]), table(1, new int[15]), 1));
    assertRefused(
        ErrorCode.SHAPE_MISMATCH,
        () -> EIGHTHS.expand(table(1, new int[1]), table(1, new int[8]), 2));
    assertRefused(
        ErrorCode.BLOCK_OUT_OF_RANGE,
        () -> EIGHTHS.expand(table(1, new int[] {-1}), table(1, new int[8]), 1));
    assertRefused(
        ErrorCode.OVERFLOW,
        () -> EIGHTHS.expand(table(1, new int[] {1 << 28}), table(1, new int[8]), 1));
    TensorView onDevice =
        TensorView.of(
            MemorySegment.ofArray(new int[1]), DType.INT32, new Device(Platform.CUDA, 0), 1, 1);
    assertRefused(
        ErrorCode.DEVICE_MISMATCH, () -> EIGHTHS.expand(onDevice, table(1, new int[8]), 1));
  }

  private static TensorView table(int rows, int[] entries) {
    assertThat(entries.length % rows).isZero();
    MemorySegment memory = MemorySegment.ofArray(entries);
    assertThat(memory.byteSize()).isEqualTo(entries.length * ValueLayout.JAVA_INT.byteSize());
    return TensorView.ofHost(memory, DType.INT32, rows, entries.length / rows);
  }
}

package bifocal.core.cache;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import bifocal.core.error.ErrorCode;
import io.vavr.collection.Vector;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

class BlockTableTest {
  private static final KvCacheSpec SPEC =
      new KvCacheSpec(KvLayouts.NHD, KvCacheDtype.FLOAT32, 4, 1, 2, 2, KvScales.ONE);

  private final KvCachePool pool =
      KvCachePool.allocate(Vector.of(new KvCachePool.Group("group", Vector.of("layer"), SPEC, 7)));
  private final KvBlocks blocks = pool.group("group");
  private final BlockTable table = BlockTable.allocate(blocks, 3, 14);
  private final MemorySegment slots = MemorySegment.ofArray(new long[16]);

  @AfterEach
  void close() {
    table.close();
    pool.close();
  }

  @Test
  void tokensGetTheSlotsOfTheirRowsBlocks() {
    table.append(0, 3, slots, 0);
    table.append(1, 5, slots, 3);
    table.append(0, 3, slots, 8);
    assertThat(row(0)).containsExactly(1, 4, 0, 0);
    assertThat(row(1)).containsExactly(2, 3, 0, 0);
    assertThat(row(2)).containsOnly(0);
    assertThat(slots(0, 11)).containsExactly(4, 5, 6, 8, 9, 10, 11, 12, 7, 16, 17);
    assertThat(table.tokens(0)).isEqualTo(6);
  }

  @Test
  void aRowThatIsReleasedGivesItsBlocksBackAndIsNullAgain() {
    table.append(0, 9, slots, 0);
    table.release(0);
    table.release(0);
    assertThat(row(0)).containsOnly(0);
    assertThat(table.tokens(0)).isZero();
    assertThat(blocks.free()).isEqualTo(6);
  }

  @Test
  void aRowWithoutFreeBlocksIsLeftAsItWas() {
    table.append(0, 14, slots, 0);
    table.append(1, 4, slots, 0);
    slots.fill((byte) 0);
    assertThat(table.blocksToAppend(1, 8)).isEqualTo(2);
    assertRefused(ErrorCode.POOL_EXHAUSTED, () -> table.append(1, 8, slots, 0));
    assertThat(table.tokens(1)).isEqualTo(4);
    assertThat(row(1)).containsExactly(5, 0, 0, 0);
    assertThat(slots(0, 8)).containsOnly(0);
    assertThat(blocks.free()).isEqualTo(1);
  }

  @Test
  void aSharedBeginningIsCopiedOnlyInTheBlockThatIsWritten() {
    table.append(0, 6, slots, 0);
    blocks.view("layer").tokens(KvLayouts.NHD).write(8, 0, new float[] {5, 6}, new float[] {7, 8});
    assertThat(table.blocksToAppend(0, 1)).isZero();
    table.share(0, 2);
    assertThat(row(2)).containsExactly(1, 2, 0, 0);
    assertThat(table.blocksToAppend(2, 0)).isZero();
    assertThat(table.blocksToAppend(2, 1)).isEqualTo(1);
    assertThat(table.blocksToAppend(2, 3)).isEqualTo(2);
    table.append(2, 1, slots, 0);
    assertThat(row(2)).containsExactly(1, 3, 0, 0);
    assertThat(row(0)).containsExactly(1, 2, 0, 0);
    assertThat(slots(0, 1)).containsExactly(14);
    float[] key = new float[2];
    blocks.view("layer").tokens(KvLayouts.NHD).readKey(12, 0, key);
    assertThat(key).containsExactly(5, 6);
    table.release(0);
    assertThat(blocks.free()).isEqualTo(4);
  }

  @Test
  void aFullSharedBlockIsNotCopied() {
    table.append(0, 4, slots, 0);
    table.share(0, 1);
    table.append(1, 1, slots, 0);
    assertThat(row(1)).containsExactly(1, 2, 0, 0);
    assertThat(blocks.free()).isEqualTo(4);
  }

  @Test
  void swappedRowsKeepTheirTokens() {
    table.append(0, 5, slots, 0);
    table.append(1, 1, slots, 0);
    table.swap(0, 1);
    assertThat(row(0)).containsExactly(3, 0, 0, 0);
    assertThat(row(1)).containsExactly(1, 2, 0, 0);
    table.append(1, 1, slots, 0);
    assertThat(slots(0, 1)).containsExactly(9);
  }

  @Test
  void whatDoesNotFitIsRefusedBeforeAnythingIsLeased() {
    assertRefused(ErrorCode.BLOCK_TABLE_TOO_SHORT, () -> table.append(0, 17, slots, 0));
    assertRefused(ErrorCode.MEMORY_TOO_SMALL, () -> table.append(0, 5, slots, 12));
    assertRefused(ErrorCode.NEGATIVE, () -> table.append(0, -1, slots, 0));
    assertRefused(ErrorCode.NEGATIVE, () -> table.append(0, 1, slots, -1));
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> table.append(3, 1, slots, 0));
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> table.append(-1, 1, slots, 0));
    assertThat(blocks.free()).isEqualTo(6);
  }

  @Test
  void aRowInUseIsNotSharedOver() {
    table.append(0, 1, slots, 0);
    table.append(1, 1, slots, 0);
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> table.share(0, 1));
  }

  @Test
  void afterCloseItsBlocksAreFreeAndItIsNotUsable() {
    table.append(0, 5, slots, 0);
    table.close();
    assertThatCode(table::close).doesNotThrowAnyException();
    assertThat(blocks.free()).isEqualTo(6);
    assertRefused(ErrorCode.CLOSED, table::tensor);
    assertRefused(ErrorCode.CLOSED, () -> table.append(0, 1, slots, 0));
  }

  private int[] row(int row) {
    int[] all = table.tensor().data().toArray(ValueLayout.JAVA_INT);
    return Arrays.copyOfRange(all, row * 4, row * 4 + 4);
  }

  private long[] slots(int from, int to) {
    return Arrays.copyOfRange(slots.toArray(ValueLayout.JAVA_LONG), from, to);
  }
}

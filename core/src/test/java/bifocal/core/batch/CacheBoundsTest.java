package bifocal.core.batch;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import bifocal.core.device.Device;
import bifocal.core.device.Platform;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class CacheBoundsTest {

  @Test
  void onlyBlocksThatHoldKeysOfLiveRequestsCount() {
    CommonAttentionMetadata batch =
        CommonAttentionMetadata.builder(
                new int[] {0, 1, 3, 9},
                new int[] {16, 17, 99},
                Batches.table(new int[] {3, 900}, new int[] {1, 5}, new int[] {800, 800}),
                Batches.slots(63, 94, 95, 7000, 0, 0, 0, 0, 0))
            .live(2)
            .build();
    assertThat(CacheBounds.of(batch, 16)).isEqualTo(new CacheBounds(5, 95));
  }

  @Test
  void aBlockOutsideTheCacheIsRefused() {
    CacheBounds bounds = new CacheBounds(5, 10);
    assertThatCode(() -> bounds.requireInside(6, 16)).doesNotThrowAnyException();
    assertRefused(ErrorCode.BLOCK_OUT_OF_RANGE, () -> bounds.requireInside(5, 16))
        .contains("5")
        .contains("0..4");
  }

  @Test
  void aSlotOutsideTheCacheIsRefused() {
    CacheBounds bounds = new CacheBounds(0, 96);
    assertThatCode(() -> bounds.requireInside(7, 16)).doesNotThrowAnyException();
    assertRefused(ErrorCode.SLOT_OUT_OF_RANGE, () -> bounds.requireInside(6, 16)).contains("95");
    assertRefused(
        ErrorCode.SLOT_OUT_OF_RANGE,
        () -> CacheBounds.requireInside(Batches.slots(-1L, 96L), 6, 16));
    assertRefused(
        ErrorCode.SLOT_OUT_OF_RANGE, () -> CacheBounds.requireInside(Batches.slots(-2L), 6, 16));
    assertThatCode(() -> CacheBounds.requireInside(Batches.slots(-1L, 95L), 6, 16))
        .doesNotThrowAnyException();
  }

  @Test
  void aTableThatIsTooShortForItsSequenceIsRefusedByRequest() {
    CommonAttentionMetadata batch =
        CommonAttentionMetadata.builder(
                new int[] {0, 1, 2},
                new int[] {16, 33},
                Batches.table(new int[] {1, 2}, new int[] {3, 4}),
                Batches.slots(2))
            .build();
    assertRefused(ErrorCode.BLOCK_TABLE_TOO_SHORT, () -> CacheBounds.of(batch, 16))
        .contains("request 1")
        .contains("3 blocks");
  }

  @Test
  void negativeBlocksAreRefusedByRequest() {
    CommonAttentionMetadata batch =
        CommonAttentionMetadata.builder(
                new int[] {0, 1}, new int[] {16}, Batches.table(new int[] {-4}), Batches.slots(1))
            .build();
    assertRefused(ErrorCode.BLOCK_OUT_OF_RANGE, () -> CacheBounds.of(batch, 16))
        .contains("request 0")
        .contains("-4");
  }

  @Test
  void fewerSlotsThanQueriesAreRefused() {
    CommonAttentionMetadata batch =
        CommonAttentionMetadata.builder(
                new int[] {0, 3}, new int[] {3}, Batches.table(1, 1), Batches.slots(2))
            .build();
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> CacheBounds.of(batch, 16)).contains("request 0");
  }

  @Test
  void slotsOfAnotherSequenceAreCountedByThemselves() {
    CommonAttentionMetadata.Builder batch =
        CommonAttentionMetadata.builder(
            new int[] {0, 3}, new int[] {2}, Batches.table(new int[] {4}), Batches.slots(64L, 70L));
    assertThat(CacheBounds.of(batch.independentKeys().build(), 16))
        .isEqualTo(new CacheBounds(4, 70));
  }

  @Test
  void aTableOnADeviceIsNotRead() {
    TensorView table =
        TensorView.of(
            MemorySegment.ofArray(new int[1]), DType.INT32, new Device(Platform.CUDA, 0), 1, 1);
    CommonAttentionMetadata batch =
        CommonAttentionMetadata.builder(new int[] {0, 1}, new int[] {1}, table, Batches.slots(1))
            .build();
    assertRefused(ErrorCode.DEVICE_MISMATCH, () -> CacheBounds.of(batch, 16));
  }

  @Test
  void aPartIsReadThroughItsOwnRows() {
    CommonAttentionMetadata batch =
        CommonAttentionMetadata.builder(
                new int[] {0, 1, 2},
                new int[] {16, 16},
                Batches.table(new int[] {9}, new int[] {4}),
                Batches.slots(159, 79))
            .build();
    assertThat(CacheBounds.of(batch.cut(1).request(1).withoutImages(), 16))
        .isEqualTo(new CacheBounds(4, 79));
  }
}

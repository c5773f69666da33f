package bifocal.core.tensor;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.device.Device;
import bifocal.core.device.Platform;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;
import org.junit.jupiter.api.Test;

class TensorViewTest {

  @Test
  void aRowMajorViewStridesFromTheLastDimension() {
    TensorView view = TensorView.ofHost(memory(24), DType.FP32, 2, 3, 4);
    assertThat(view.rank()).isEqualTo(3);
    assertThat(view.shape()).containsExactly(2, 3, 4);
    assertThat(view.stride(0)).isEqualTo(12);
    assertThat(view.stride(1)).isEqualTo(4);
    assertThat(view.stride(2)).isEqualTo(1);
    assertThat(view.elements()).isEqualTo(24);
    assertThat(view.contiguous()).isTrue();
  }

  @Test
  void memoryThatMissesTheLastElementIsRefusedWithBothSizes() {
    assertRefused(
            ErrorCode.MEMORY_TOO_SMALL, () -> TensorView.ofHost(memory(23), DType.FP32, 2, 3, 4))
        .contains("92 bytes")
        .contains("96 bytes");
  }

  @Test
  void aStridedViewNeedsMemoryUpToItsLastElementOnly() {
    long[] shape = {2, 3};
    long[] strides = {10, 1};
    TensorView view = TensorView.of(memory(13), DType.FP32, Device.HOST, shape, strides);
    assertThat(view.contiguous()).isFalse();
    assertRefused(
        ErrorCode.MEMORY_TOO_SMALL,
        () -> TensorView.of(memory(12), DType.FP32, Device.HOST, shape, strides));
  }

  @Test
  void aTensorWithoutElementsNeedsNoMemory() {
    TensorView view = TensorView.ofHost(memory(0), DType.FP32, 0, 128);
    assertThat(view.elements()).isZero();
    assertThat(view.rows(0, 0).size(0)).isZero();
  }

  @Test
  void rowsShareTheMemory() {
    MemorySegment memory = memory(24);
    TensorView rows = TensorView.ofHost(memory, DType.FP32, 6, 4).rows(2, 5);
    assertThat(rows.shape()).containsExactly(3, 4);
    assertThat(rows.data()).isEqualTo(memory.asSlice(32));
  }

  @Test
  void noRowsMayBeTakenAtTheEndOfAStridedView() {
    TensorView view =
        TensorView.of(memory(13), DType.FP32, Device.HOST, new long[] {2, 3}, new long[] {10, 1});
    assertThat(view.rows(2, 2).size(0)).isZero();
  }

  @Test
  void rowsOutsideAreRefused() {
    TensorView view = TensorView.ofHost(memory(24), DType.FP32, 6, 4);
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> view.rows(-1, 2));
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> view.rows(2, 7));
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> view.rows(3, 2));
    assertRefused(
        ErrorCode.SHAPE_MISMATCH, () -> TensorView.ofHost(memory(1), DType.FP32).rows(0, 1));
  }

  @Test
  void negativeSizesAndStridesAreRefused() {
    assertRefused(ErrorCode.NEGATIVE, () -> TensorView.ofHost(memory(4), DType.FP32, 2, -1));
    assertRefused(
        ErrorCode.NEGATIVE,
        () ->
            TensorView.of(
                memory(4), DType.FP32, Device.HOST, new long[] {2, 2}, new long[] {-2, 1}));
  }

  @Test
  void stridesAreAsManyAsDimensions() {
    assertRefused(
        ErrorCode.SHAPE_MISMATCH,
        () -> TensorView.of(memory(4), DType.FP32, Device.HOST, new long[] {2, 2}, new long[] {1}));
  }

  @Test
  void sizesBeyondALongAreRefused() {
    assertRefused(
        ErrorCode.OVERFLOW, () -> TensorView.ofHost(memory(1), DType.FP32, 1L << 40, 1L << 40));
    assertRefused(
        ErrorCode.OVERFLOW,
        () ->
            TensorView.of(
                memory(1),
                DType.FP32,
                Device.HOST,
                new long[] {1L << 40, 1L << 40},
                new long[] {0, 0}));
    assertRefused(
        ErrorCode.OVERFLOW,
        () ->
            TensorView.of(
                memory(1),
                DType.INT64,
                Device.HOST,
                new long[] {2},
                new long[] {Long.MAX_VALUE / 2}));
  }

  @Test
  void aUseSaysWhatItNeeds() {
    TensorView view = TensorView.ofHost(memory(24), DType.FP32, 6, 4);
    assertThat(view.require("q", DType.FP32, Device.HOST, -1, 4)).isSameAs(view);
    assertRefused(ErrorCode.DTYPE_MISMATCH, () -> view.require("q", DType.BF16, Device.HOST, -1, 4))
        .contains("q")
        .contains("fp32")
        .contains("bf16");
    assertRefused(
            ErrorCode.DEVICE_MISMATCH,
            () -> view.require("q", DType.FP32, new Device(Platform.CUDA, 1), -1, 4))
        .contains("cpu:0")
        .contains("cuda:1");
    assertRefused(ErrorCode.SHAPE_MISMATCH, () -> view.require("q", DType.FP32, Device.HOST, -1, 5))
        .contains("[6, 4]")
        .contains("[-1, 5]");
    assertRefused(
        ErrorCode.SHAPE_MISMATCH, () -> view.require("q", DType.FP32, Device.HOST, -1, 4, 1));
  }

  @Test
  void aViewDoesNotFollowItsGiversArrays() {
    long[] shape = {2, 3};
    TensorView view = TensorView.of(memory(6), DType.FP32, Device.HOST, shape, new long[] {3, 1});
    shape[0] = 99;
    view.shape()[1] = 99;
    assertThat(view.shape()).containsExactly(2, 3);
  }

  private static MemorySegment memory(int floats) {
    return MemorySegment.ofArray(new float[floats]);
  }
}

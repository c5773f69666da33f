package bifocal.reference;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.device.Device;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.Arena;
import org.junit.jupiter.api.Test;

/** Reading and writing numbers of host tensors. */
class HostTensorTest {
  @Test
  void halfNumbersAreRoundedToNearestTiesToEven() {
    assertThat(HostTensor.round(1 + 0x1p-8f, DType.BF16)).isEqualTo(1f);
    assertThat(HostTensor.round(1 + 0x3p-8f, DType.BF16)).isEqualTo(1 + 0x1p-6f);
    assertThat(HostTensor.round(1 + 0x1p-8f + 0x1p-20f, DType.BF16)).isEqualTo(1 + 0x1p-7f);
    assertThat(HostTensor.round(1 + 0x1p-11f, DType.FP16)).isEqualTo(1f);
    assertThat(HostTensor.round(70_000f, DType.FP16)).isEqualTo(Float.POSITIVE_INFINITY);
    assertThat(HostTensor.round(Float.MAX_VALUE, DType.BF16)).isEqualTo(Float.POSITIVE_INFINITY);
    assertThat(HostTensor.round(Float.NaN, DType.BF16)).isNaN();
    assertThat(HostTensor.round(Float.intBitsToFloat(0x7f800001), DType.BF16)).isNaN();
  }

  @Test
  void everyTypeReadsBackWhatWasWrittenThroughStrides() {
    for (DType type : new DType[] {DType.FP32, DType.FP16, DType.BF16}) {
      TensorView view =
          TensorView.of(
              Arena.ofAuto().allocate(64L * type.bytes()),
              type,
              Device.HOST,
              new long[] {2, 2, 3},
              new long[] {20, 7, 2});
      HostTensor tensor = HostTensor.over(view);
      tensor.put(-1.5f, 1, 1, 2);
      assertThat(tensor.at(1, 1, 2)).isEqualTo(-1.5f);
      assertThat(tensor.at(1, 1, 1)).isZero();
    }
  }

  @Test
  void memoryOfAnotherDeviceIsNotTouched() {
    TensorView view =
        TensorView.of(Arena.ofAuto().allocate(4), DType.FP32, new Device(Platform.CUDA, 0), 1);
    assertThatThrownBy(() -> HostTensor.over(view))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DEVICE_MISMATCH));
  }

  @Test
  void integersAreNoNumbersOfAttention() {
    assertThatThrownBy(() -> HostTensor.over(Batches.longs(1)))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DTYPE_MISMATCH));
  }
}

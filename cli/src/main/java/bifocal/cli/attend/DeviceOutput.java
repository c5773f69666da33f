package bifocal.cli.attend;

import bifocal.cli.backend.RunDevice;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.Arena;

/**
 * Where a forward writes, and how that becomes fp32 on the host. Kernels of the host write fp32 at
 * once; those of a device write the layer's type, which is widened here.
 *
 * @param host fp32 output, and the log-sum-exp if it is wanted
 * @param narrow output in the layer's type, on the host
 * @param onDevice what the forward gets
 */
record DeviceOutput(AttentionOutput host, TensorView narrow, AttentionOutput onDevice) {
  private static final byte NAN = (byte) 0xFF;

  static DeviceOutput of(RunDevice device, DType type, AttentionOutput host, Arena owner) {
    if (device.isHost()) {
      return new DeviceOutput(host, host.out(), host);
    }
    TensorView narrow =
        TensorView.ofHost(
            owner.allocate(Math.max(1, host.out().elements() * type.bytes()), 64),
            type,
            host.out().shape());
    AttentionOutput twins =
        new AttentionOutput(
            device.twin("output", narrow), host.lse().map(lse -> device.twin("LSE", lse)));
    device.fill(twins.out(), NAN);
    twins.lse().forEach(lse -> device.fill(lse, NAN));
    return new DeviceOutput(host, narrow, twins);
  }

  /** Copies what the forward wrote to the host. */
  void fetch(RunDevice device) {
    if (device.isHost()) {
      return;
    }
    device.download(onDevice.out(), narrow);
    onDevice.lse().forEach(lse -> device.download(lse, host.lse().get()));
    DType type = narrow.dtype();
    for (long i = 0; i < narrow.elements(); i++) {
      NarrowFloats.store(
          host.out().data(),
          i * Float.BYTES,
          DType.FP32,
          NarrowFloats.load(narrow.data(), i * type.bytes(), type));
    }
  }
}

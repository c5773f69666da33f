package bifocal.cuda.triton;

import bifocal.core.batch.CacheBounds;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.memory.DeviceBlock;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Slots on the device. Those that the host keeps there are taken as they are, unchecked; others are
 * checked and copied, with one copy a layer.
 */
final class SlotUpload implements AutoCloseable {
  private final TritonDevice device;
  private final StepStaging staging;
  private @Nullable DeviceBlock block;

  SlotUpload(TritonDevice device) {
    this.device = device;
    this.staging = new StepStaging(device.context());
  }

  /** Device address of a step's slots. */
  long address(CudaLaunchContext launch, SlotMapping slots, KvCacheView view) {
    TensorView tensor = slots.slots();
    if (tensor.size(0) > 1 && tensor.stride(0) != 1) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "stride of the slot mapping", tensor.stride(0), 1);
    }
    if (tensor.device().equals(launch.device())) {
      return tensor.address();
    }
    CacheBounds.requireInside(slots, view.numBlocks(), view.spec().blockSize());
    long bytes = tensor.size(0) * Long.BYTES;
    MemorySegment target = room(launch, bytes).asSlice(0, bytes);
    StepStaging.Slot slot = staging.take(bytes);
    MemorySegment.copy(tensor.data(), 0, slot.host(), 0, bytes);
    slot.upload(launch.queue(), target);
    return target.address();
  }

  private MemorySegment room(CudaLaunchContext launch, long bytes) {
    DeviceBlock present = block;
    if (present != null && present.bytes() >= bytes) {
      return present.segment();
    }
    if (present != null) {
      launch.queue().synchronize();
      block = null;
      present.close();
    }
    DeviceBlock larger =
        device.memory().acquire("slots of a layer", Math.max(4096, Long.highestOneBit(bytes) * 2));
    block = larger;
    return larger.segment();
  }

  @Override
  public void close() {
    DeviceBlock present = block;
    block = null;
    try {
      staging.close();
    } finally {
      if (present != null) {
        present.close();
      }
    }
  }
}

package bifocal.cuda.triton;

import bifocal.core.batch.CacheBounds;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.memory.DeviceBlock;
import bifocal.cuda.memory.DeviceMemory;
import java.lang.foreign.MemorySegment;
import org.jspecify.annotations.Nullable;

/**
 * Slots on the device, for the layers that are written on one stream. Those that the host keeps on
 * the device are taken as they are, unchecked. Others are checked, and copied unless they are the
 * ones copied last: of a step's layers, the first one copies and the others find the copy.
 */
final class SlotUpload implements AutoCloseable {
  private static final long LEAST = 4096;

  private final DeviceMemory memory;
  private final StepStaging staging;
  private @Nullable DeviceBlock block;
  private MemorySegment copied = MemorySegment.NULL;
  private long copiedBytes;

  SlotUpload(CudaContext context, DeviceMemory memory) {
    this.memory = memory;
    this.staging = new StepStaging(context, "the device of the kernels");
  }

  /**
   * Device address of a step's slots.
   *
   * @throws BifocalException {@code SHAPE_MISMATCH}, {@code SLOT_OUT_OF_RANGE}, {@code
   *     NOT_CAPTURABLE} for slots of the host while the stream records
   */
  long address(CudaStream stream, SlotMapping slots, KvCacheView view) {
    TensorView tensor = slots.slots();
    if (tensor.size(0) > 1 && tensor.stride(0) != 1) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "stride of the slot mapping", tensor.stride(0), 1);
    }
    if (tensor.device().equals(view.device())) {
      return tensor.address();
    }
    CacheBounds.requireInside(slots, view.numBlocks(), view.spec().blockSize());
    if (stream.capturing()) {
      throw BifocalException.of(
              ErrorCode.NOT_CAPTURABLE, "slots of a captured write", tensor.device(), view.device())
          .withRemedy("keep the slot mapping in memory of the device, where a replay reads it");
    }
    return copy(stream, tensor.data(), tensor.size(0) * Long.BYTES);
  }

  private long copy(CudaStream stream, MemorySegment slots, long bytes) {
    DeviceBlock present = block;
    if (present != null
        && bytes == copiedBytes
        && MemorySegment.mismatch(slots, 0, bytes, copied, 0, bytes) < 0) {
      return present.segment().address();
    }
    copiedBytes = 0;
    MemorySegment target = room(stream, bytes).asSlice(0, bytes);
    StepStaging.Slot slot = staging.take(bytes);
    copied = slot.host();
    MemorySegment.copy(slots, 0, copied, 0, bytes);
    slot.upload(stream, target);
    copiedBytes = bytes;
    return target.address();
  }

  private MemorySegment room(CudaStream stream, long bytes) {
    DeviceBlock present = block;
    if (present != null && present.bytes() >= bytes) {
      return present.segment();
    }
    if (present != null) {
      stream.synchronize();
      block = null;
      present.close();
    }
    DeviceBlock larger =
        memory.acquire("slots of a step", Math.max(LEAST, Long.highestOneBit(bytes) * 2));
    block = larger;
    return larger.segment();
  }

  @Override
  public void close() {
    DeviceBlock present = block;
    block = null;
    copiedBytes = 0;
    try {
      staging.close();
    } finally {
      if (present != null) {
        present.close();
      }
    }
  }
}

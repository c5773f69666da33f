package bifocal.cuda.triton;

import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheView;
import bifocal.cuda.driver.CudaStream;
import org.jspecify.annotations.Nullable;

/**
 * A layer's way to the slots of a stream, which are looked up again only when another one comes.
 */
final class StreamSlots {
  private final TritonDevice device;
  private @Nullable SlotUpload known;
  private long stream;

  StreamSlots(TritonDevice device) {
    this.device = device;
  }

  /** Device address of a step's slots, as {@link SlotUpload#address}. */
  long address(CudaStream on, SlotMapping slots, KvCacheView view) {
    SlotUpload upload = known;
    if (upload == null || stream != on.handle()) {
      upload = device.slots(on);
      known = upload;
      stream = on.handle();
    }
    return upload.address(on, slots, view);
  }
}

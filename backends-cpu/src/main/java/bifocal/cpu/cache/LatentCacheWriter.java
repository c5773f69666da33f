package bifocal.cpu.cache;

import bifocal.core.backend.KvInput;
import bifocal.core.batch.CacheBounds;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.core.tensor.TensorView;
import io.vavr.control.Option;
import java.lang.foreign.ValueLayout;

/**
 * Writes the latent vector and the rotary key of a step's tokens into a cache in host memory, one
 * behind the other. Its layout must hold plain numbers.
 */
public final class LatentCacheWriter {
  private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED;

  private final KvCacheView cache;
  private final KvCacheView.TokenAccess tokens;
  private final float[] row;
  private final float[] latent;

  /**
   * A writer of one layer's cache. It serves one thread at a time.
   *
   * @throws BifocalException {@code KV_INCOMPATIBLE} when records of the cache cannot be written
   *     here, {@code DEVICE_MISMATCH} when the host cannot reach it
   */
  public LatentCacheWriter(KvCacheView cache) {
    KvCacheSpec spec = cache.spec();
    spec.layout()
        .objection(spec)
        .orElse(
            () ->
                Option.when(
                    spec.dtype().elementType().isEmpty(),
                    "records of " + spec.dtype() + " are not written here"))
        .forEach(
            objection -> {
              throw BifocalException.of(
                  ErrorCode.KV_INCOMPATIBLE, "latent KV cache", spec.layout().name(), objection);
            });
    this.cache = cache;
    this.tokens = cache.tokens(spec.layout());
    this.row = new float[spec.headSize()];
    this.latent = new float[spec.headSizeV()];
  }

  /**
   * Writes tokens to their slots; those without one are left out. Everything is checked before the
   * first number is written.
   *
   * @param input latent vectors and rotary keys in host memory, fp32, fp16 or bf16
   * @throws BifocalException {@code SHAPE_MISMATCH}, {@code DTYPE_MISMATCH}, {@code
   *     DEVICE_MISMATCH}, {@code SLOT_OUT_OF_RANGE} or {@code CLOSED}
   */
  public void write(KvInput.Latent input, SlotMapping slots) {
    KvCacheSpec spec = cache.spec();
    long count = slots.tokens();
    require("latent vectors", input.ckv(), count, spec.headSizeV());
    require("rotary keys", input.kPe(), count, spec.headSize() - spec.headSizeV());
    cache.requireOpen();
    CacheBounds.requireInside(slots, cache.numBlocks(), spec.blockSize());
    for (long token = 0; token < count; token++) {
      long slot = slots.slots().data().get(LONG, token * slots.slots().stride(0) * Long.BYTES);
      if (slot != SlotMapping.PADDING) {
        read(input.ckv(), token, 0);
        System.arraycopy(row, 0, latent, 0, latent.length);
        read(input.kPe(), token, latent.length);
        tokens.write(slot, 0, row, latent);
      }
    }
  }

  private void read(TensorView numbers, long token, int at) {
    DType type = numbers.dtype();
    for (int d = 0; d < numbers.size(1); d++) {
      long element = token * numbers.stride(0) + d * numbers.stride(1);
      row[at + d] = NarrowFloats.load(numbers.data(), element * type.bytes(), type);
    }
  }

  private static void require(String name, TensorView numbers, long tokens, int width) {
    numbers.require(name, numbers.dtype(), Device.HOST, tokens, width);
    switch (numbers.dtype()) {
      case FP32, FP16, BF16 -> {}
      case FP8_E4M3, FP8_E5M2, INT8, UINT8, INT32, INT64 ->
          throw BifocalException.of(
              ErrorCode.DTYPE_MISMATCH, name, numbers.dtype(), "fp32, fp16 or bf16");
    }
  }
}

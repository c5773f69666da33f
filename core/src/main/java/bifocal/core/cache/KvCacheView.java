package bifocal.core.cache;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;

/**
 * One layer's blocks in memory somebody else owns: the host engine's own, or a pool's. Block {@code
 * b} starts {@code b * blockStride()} bytes into the memory. Block 0 is the null block: zero-filled
 * and never written.
 */
public final class KvCacheView {
  private final MemorySegment memory;
  private final KvCacheSpec spec;
  private final Device device;
  private final int numBlocks;
  private final long blockStride;

  private KvCacheView(
      MemorySegment memory, KvCacheSpec spec, Device device, int numBlocks, long blockStride) {
    this.memory = memory;
    this.spec = spec;
    this.device = device;
    this.numBlocks = numBlocks;
    this.blockStride = blockStride;
  }

  /** Wraps host memory whose blocks follow each other without gaps. */
  public static KvCacheView wrap(MemorySegment memory, KvCacheSpec spec) {
    long blockBytes = spec.blockBytes();
    return wrap(
        memory,
        spec,
        Device.HOST,
        (int) Math.min(memory.byteSize() / blockBytes, Integer.MAX_VALUE),
        blockBytes);
  }

  /**
   * Wraps memory of a device.
   *
   * @param blockStride bytes from one block to the next, at least a block's size
   * @throws BifocalException {@code MEMORY_TOO_SMALL}, {@code OVERFLOW} or {@code
   *     INVALID_PARAMETER}
   */
  public static KvCacheView wrap(
      MemorySegment memory, KvCacheSpec spec, Device device, int numBlocks, long blockStride) {
    long blockBytes = spec.blockBytes();
    if (numBlocks < 1 || blockStride < blockBytes) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "KV cache",
          numBlocks + " blocks, stride " + blockStride,
          "at least 1 block (the null block), stride at least " + blockBytes);
    }
    long needed;
    try {
      needed = Math.addExact(Math.multiplyExact(numBlocks - 1L, blockStride), blockBytes);
    } catch (ArithmeticException e) {
      throw BifocalException.of(ErrorCode.OVERFLOW, "size of a KV cache").causedBy(e);
    }
    if (memory.byteSize() < needed) {
      throw BifocalException.of(
          ErrorCode.MEMORY_TOO_SMALL,
          "memory of a KV cache of " + numBlocks + " blocks",
          memory.byteSize() + " bytes",
          needed + " bytes");
    }
    return new KvCacheView(memory, spec, device, numBlocks, blockStride);
  }

  /** The memory of all blocks. */
  public MemorySegment memory() {
    return memory;
  }

  public KvCacheSpec spec() {
    return spec;
  }

  public Device device() {
    return device;
  }

  /** Number of blocks, the null block included. */
  public int numBlocks() {
    return numBlocks;
  }

  /** Bytes from one block to the next. */
  public long blockStride() {
    return blockStride;
  }

  /** Byte offset of a block. */
  public long blockOffset(int block) {
    if (block < 0 || block >= numBlocks) {
      throw BifocalException.of(
          ErrorCode.BLOCK_OUT_OF_RANGE, "block of a KV cache", block, "0.." + (numBlocks - 1));
    }
    return block * blockStride;
  }

  /**
   * Requires that the memory may still be used.
   *
   * @throws BifocalException {@code CLOSED}
   */
  public void requireOpen() {
    if (!memory.scope().isAlive()) {
      throw BifocalException.of(ErrorCode.CLOSED, "the KV cache's memory was released");
    }
  }

  /**
   * The plain reader and writer of single tokens, for tests, capture and comparison. Only a layout
   * knows the bytes; asking for another than the contract's is refused.
   *
   * @throws BifocalException {@code KV_INCOMPATIBLE}, or {@code DEVICE_MISMATCH} when the host
   *     cannot read the memory
   */
  public TokenAccess tokens(KvLayout layout) {
    if (!layout.name().equals(spec.layout().name())) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE, "layout of a KV cache", spec.layout().name(), layout.name());
    }
    if (!device.hostReadable()) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, "reading a KV cache from the host", device, Device.HOST);
    }
    return new TokenAccess(this);
  }

  /** Reads and writes single tokens of a cache in host memory. */
  public static final class TokenAccess {
    private final KvCacheView view;

    private TokenAccess(KvCacheView view) {
      this.view = view;
    }

    /** Writes one token's key and value for one head at a slot; see {@link KvLayout#write}. */
    public void write(long slot, int kvHead, float[] key, float[] value) {
      requireHead(kvHead);
      requireLength("key", key, view.spec.headSize());
      requireLength("value", value, view.spec.headSizeV());
      view.spec.layout().write(view.spec, block(slot), token(slot), kvHead, key, value);
    }

    /** Reads the key of one head at a slot. */
    public void readKey(long slot, int kvHead, float[] key) {
      requireHead(kvHead);
      requireLength("key", key, view.spec.headSize());
      view.spec.layout().readKey(view.spec, block(slot), token(slot), kvHead, key);
    }

    /** Reads the value of one head at a slot. */
    public void readValue(long slot, int kvHead, float[] value) {
      requireHead(kvHead);
      requireLength("value", value, view.spec.headSizeV());
      view.spec.layout().readValue(view.spec, block(slot), token(slot), kvHead, value);
    }

    private void requireHead(int kvHead) {
      if (kvHead < 0 || kvHead >= view.spec.numKvHeads()) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "KV head", kvHead, "0.." + (view.spec.numKvHeads() - 1));
      }
    }

    private static void requireLength(String name, float[] numbers, int wanted) {
      if (numbers.length < wanted) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "numbers of a " + name, numbers.length, wanted);
      }
    }

    private MemorySegment block(long slot) {
      view.requireOpen();
      long block = Math.floorDiv(slot, (long) view.spec.blockSize());
      if (block < 0 || block >= view.numBlocks) {
        throw BifocalException.of(
            ErrorCode.SLOT_OUT_OF_RANGE,
            "slot of a KV cache",
            slot,
            "0.." + ((long) view.numBlocks * view.spec.blockSize() - 1));
      }
      return view.memory.asSlice(block * view.blockStride, view.spec.blockBytes());
    }

    private int token(long slot) {
      return (int) Math.floorMod(slot, (long) view.spec.blockSize());
    }
  }
}

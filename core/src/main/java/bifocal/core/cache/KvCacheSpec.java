package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * The contract of one layer group's cache, agreed between its writer and every reader before memory
 * is allocated.
 *
 * @param layout arrangement of a block
 * @param dtype resolved type, never {@code AUTO}
 * @param blockSize tokens per block of the block table
 * @param numKvHeads heads cached per token
 * @param headSize elements of a key per head
 * @param headSizeV elements of a value per head
 * @param scales factors of quantised numbers
 */
public record KvCacheSpec(
    KvLayout layout,
    KvCacheDtype dtype,
    int blockSize,
    int numKvHeads,
    int headSize,
    int headSizeV,
    KvScales scales) {

  public KvCacheSpec {
    if (dtype == KvCacheDtype.AUTO) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "type of a KV cache", dtype, "a resolved type");
    }
    if (blockSize < 1 || numKvHeads < 1 || headSize < 1 || headSizeV < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "KV cache sizes",
          "block " + blockSize + ", heads " + numKvHeads + ", head " + headSize + "/" + headSizeV,
          "all at least 1");
    }
    if (scales instanceof KvScales.PerHead perHead && perHead.heads() != numKvHeads) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "KV scales per head", perHead.heads(), numKvHeads);
    }
  }

  /**
   * Bytes of one block's record.
   *
   * @throws BifocalException {@code OVERFLOW}, or {@code KV_INCOMPATIBLE} when the layout cannot
   *     hold numbers of this type
   */
  public long blockBytes() {
    try {
      return layout.blockBytes(this);
    } catch (ArithmeticException e) {
      throw BifocalException.of(ErrorCode.OVERFLOW, "size of a KV cache block").causedBy(e);
    }
  }

  /** Blocks that hold {@code tokens} tokens. */
  public int blocksFor(int tokens) {
    return Math.ceilDiv(tokens, blockSize);
  }
}

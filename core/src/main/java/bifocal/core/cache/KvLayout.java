package bifocal.core.cache;

import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;

/**
 * How the record of one block is arranged. An open value: a backend may bring its own. Two layouts
 * are the same when their names are. Everything outside a layout treats blocks as opaque records.
 */
public interface KvLayout {
  /** Unique name, for instance {@code NHD}. */
  String name();

  /**
   * Why this layout cannot hold such a cache, for instance because a vector width does not divide
   * the head size; absent when it can. Asked before any other question about the contract.
   */
  default Option<String> objection(KvCacheSpec spec) {
    return Option.none();
  }

  /** Bytes of one block's record. */
  long blockBytes(KvCacheSpec spec);

  /** Byte offset of the values inside a block's record; keys start at 0. */
  long valueOffset(KvCacheSpec spec);

  /**
   * Writes one token's key and value for one head into host memory, quantising as the contract
   * says. This is the plain, slow door for tests, capture and comparison.
   *
   * @param block one block's record
   * @param token position inside the block
   * @param key {@code headSize} numbers
   * @param value {@code headSizeV} numbers
   */
  void write(
      KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key, float[] value);

  /** Reads one token's key for one head from host memory, scales applied. */
  void readKey(KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key);

  /** Reads one token's value for one head from host memory, scales applied. */
  void readValue(KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] value);
}

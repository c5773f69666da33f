package bifocal.core.cache;

import java.nio.ByteBuffer;
import java.util.HexFormat;

/**
 * Names the content of one full block: its tokens, everything before them, the images among them
 * and the contract under which they were cached. A SHA-256 sum, so that two contents have two
 * names. It is the same in every JVM, and may name the block in a store outside.
 *
 * @see SequenceKeys
 */
public record BlockKey(long first, long second, long third, long fourth) {
  static final int BYTES = 32;

  static BlockKey of(byte[] sum) {
    ByteBuffer bytes = ByteBuffer.wrap(sum);
    return new BlockKey(bytes.getLong(), bytes.getLong(), bytes.getLong(), bytes.getLong());
  }

  /** The 32 bytes of the sum. */
  public byte[] bytes() {
    return ByteBuffer.allocate(BYTES)
        .putLong(first)
        .putLong(second)
        .putLong(third)
        .putLong(fourth)
        .array();
  }

  @Override
  public String toString() {
    return HexFormat.of().formatHex(bytes());
  }
}

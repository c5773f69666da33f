package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Names of the full blocks of one sequence in one group, made as its tokens become known. A name
 * covers the name of the block before, the block's token ids and, for each image that reaches into
 * the block, the image's content, its length and where the block begins in it: placeholders of two
 * images are equal tokens, and keys and values of an image's first token depend on its last. The
 * first name stands on the group, its contract (layout, type, sizes, scales) and a salt.
 *
 * <p>Not thread-safe: it belongs to whoever schedules the sequence.
 */
public final class SequenceKeys {
  private final KvBlocks group;
  private final List<BlockKey> keys = new ArrayList<>();
  private final List<Image> images = new ArrayList<>();
  private final BlockKey root;
  private final int[] block;
  private int filled;

  private record Image(int first, int last, byte[] content) {}

  private SequenceKeys(KvBlocks group, String salt) {
    this.group = group;
    this.block = new int[group.spec().blockSize()];
    this.root = root(group, salt);
  }

  /** Keys of a sequence in a group. */
  public static SequenceKeys of(KvBlocks group) {
    return of(group, "");
  }

  /**
   * Keys of a sequence that shares blocks only with sequences of the same salt, for instance the
   * model's revision, an adapter or a tenant.
   */
  public static SequenceKeys of(KvBlocks group, String salt) {
    return new SequenceKeys(group, salt);
  }

  /**
   * Announces an image, before the first of its tokens.
   *
   * @param first its first position
   * @param last its last position, inclusive
   * @param content names the pixels and what was made of them, a hash for instance; images of equal
   *     content and length have equal keys and values
   * @throws BifocalException {@code NEGATIVE}, {@code IMAGE_REVERSED}, {@code IMAGE_OVERLAP}, or
   *     {@code INVALID_PARAMETER} for an image that began among the tokens given before
   */
  public void image(int first, int last, String content) {
    if (first < 0) {
      throw BifocalException.of(ErrorCode.NEGATIVE, "first position of an image", first, "from 0");
    }
    if (last < first) {
      throw BifocalException.of(
          ErrorCode.IMAGE_REVERSED, "last position of an image", last, "from " + first);
    }
    if (first < tokens()) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "image announced behind " + tokens() + " tokens",
          first,
          "a position that follows");
    }
    for (Image other : images) {
      if (first <= other.last && other.first <= last) {
        throw BifocalException.of(
            ErrorCode.IMAGE_OVERLAP,
            "image",
            first + ".." + last,
            "none of " + other.first + ".." + other.last);
      }
    }
    images.add(new Image(first, last, content.getBytes(StandardCharsets.UTF_8)));
  }

  /** Adds tokens at the end. */
  public void append(int... tokenIds) {
    if (tokenIds.length > Integer.MAX_VALUE - tokens()) {
      throw BifocalException.of(
          ErrorCode.OVERFLOW, "tokens of a sequence", tokenIds.length, "positions of 32 bits");
    }
    for (int token : tokenIds) {
      block[filled++] = token;
      if (filled == block.length) {
        keys.add(next());
        filled = 0;
      }
    }
  }

  /** Number of tokens. */
  public int tokens() {
    return keys.size() * block.length + filled;
  }

  /** Number of full blocks, each of which has a key. */
  public int blocks() {
    return keys.size();
  }

  /**
   * Key of a full block.
   *
   * @throws BifocalException {@code BLOCK_OUT_OF_RANGE}
   */
  public BlockKey key(int index) {
    if (index < 0 || index >= keys.size()) {
      throw BifocalException.of(
          ErrorCode.BLOCK_OUT_OF_RANGE, "full block of a sequence", index, "below " + keys.size());
    }
    return keys.get(index);
  }

  /** Requires that these are keys of this very group. */
  @SuppressWarnings("ReferenceEquality") // the same blocks, not equal ones
  void requireOf(KvBlocks blocks) {
    if (group != blocks) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "keys of a sequence", group.name(), blocks.name());
    }
  }

  private BlockKey next() {
    int start = keys.size() * block.length;
    MessageDigest sum = sha256();
    sum.update((keys.isEmpty() ? root : keys.getLast()).bytes());
    ByteBuffer tokens = ByteBuffer.allocate(block.length * Integer.BYTES);
    tokens.asIntBuffer().put(block);
    sum.update(tokens);
    for (Image image : images) {
      if (image.first < start + block.length && image.last >= start) {
        sum.update(numbers(start - image.first, image.last - image.first, image.content.length));
        sum.update(image.content);
      }
    }
    return BlockKey.of(sum.digest());
  }

  private static BlockKey root(KvBlocks group, String salt) {
    KvCacheSpec spec = group.spec();
    MessageDigest sum = sha256();
    for (String text :
        Arrays.asList(group.name(), spec.layout().name(), spec.dtype().label(), salt)) {
      byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
      sum.update(numbers(bytes.length));
      sum.update(bytes);
    }
    sum.update(numbers(spec.blockSize(), spec.numKvHeads(), spec.headSize(), spec.headSizeV()));
    for (int head = 0; head < spec.numKvHeads(); head++) {
      sum.update(
          numbers(
              Float.floatToIntBits(spec.scales().key(head)),
              Float.floatToIntBits(spec.scales().value(head))));
    }
    return BlockKey.of(sum.digest());
  }

  private static ByteBuffer numbers(int... numbers) {
    ByteBuffer bytes = ByteBuffer.allocate(numbers.length * Integer.BYTES);
    bytes.asIntBuffer().put(numbers);
    return bytes;
  }

  private static MessageDigest sha256() {
    try {
      return MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw BifocalException.of(ErrorCode.INTERNAL, "every Java platform has SHA-256").causedBy(e);
    }
  }
}

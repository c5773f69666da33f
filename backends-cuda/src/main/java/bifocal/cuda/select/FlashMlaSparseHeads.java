package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * How {@code FLASHMLA_SPARSE} runs so many query heads of one rank over packed records.
 *
 * @param heads query heads of the rank
 */
public record FlashMlaSparseHeads(int heads) {
  private static final int LEAST_FOR_PREFILL_KERNEL = 32;
  private static final int HALF = 64;
  private static final int FULL = 128;
  private static final int HOPPER = 9;
  private static final int BLACKWELL = 10;
  private static final long WORKSPACE_CONTEXTS = 5;

  /** Which kernels serve a batch. */
  public enum Path {
    /** The decode kernel over packed records serves every token. */
    MIXED_BATCH,
    /** Prefills read their context as bf16 rows from a workspace; decodes read packed records. */
    SEPARATE
  }

  public FlashMlaSparseHeads {
    if (heads < 1 || heads > FULL) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED, "query heads of FLASHMLA_SPARSE", heads, "1 to " + FULL);
    }
  }

  /**
   * What is worth knowing of a layer's calls.
   *
   * @param cached type of the cache, after selection
   */
  static Seq<String> remarks(AttentionRequest request, KvCacheDtype cached) {
    int heads = request.layer().numHeads();
    int major = Sm.major(request.device());
    boolean served =
        heads <= FULL && (major == HOPPER || major == BLACKWELL) && request.layer().choosesKeys();
    return served ? new FlashMlaSparseHeads(heads).remarks(major, cached) : Vector.empty();
  }

  /** Nothing is known of records of 4 bits. */
  private Seq<String> remarks(int major, KvCacheDtype cached) {
    if (cached == KvCacheDtype.NVFP4_DS_MLA) {
      return Vector.empty();
    }
    if (!LatentCacheTypes.quantized(cached)) {
      return padded("calls", prefillHeads(major));
    }
    Seq<String> decodes = padded("decodes", decodeHeads());
    return switch (path()) {
      case MIXED_BATCH -> decodes.append("its decode kernel runs prefills, too");
      case SEPARATE ->
          decodes
              .appendAll(padded("prefills", prefillHeads(major)))
              .append("prefills unpack their context to bf16 rows first");
    };
  }

  private Seq<String> padded(String calls, int padded) {
    return Option.when(padded != heads, () -> calls + " pad " + heads + " query heads to " + padded)
        .toVector();
  }

  /** The kernels of these heads. */
  public Path path() {
    return heads < LEAST_FOR_PREFILL_KERNEL ? Path.MIXED_BATCH : Path.SEPARATE;
  }

  /** Query heads of a call of the decode kernel, padding included. */
  public int decodeHeads() {
    return heads <= HALF ? HALF : FULL;
  }

  /**
   * Query heads of a call of the bf16 prefill kernel, padding included.
   *
   * @param major major compute capability, 9 or 10
   * @throws BifocalException {@code UNSUPPORTED} for another one
   */
  public int prefillHeads(int major) {
    return switch (major) {
      case HOPPER -> Math.ceilDiv(heads, HALF) * HALF;
      case BLACKWELL -> FULL;
      default ->
          throw BifocalException.of(
              ErrorCode.UNSUPPORTED, "major compute capability of FLASHMLA_SPARSE", major, "9, 10");
    };
  }

  /**
   * bf16 rows of the workspace of prefills, one for each token of context; none where they read
   * packed records.
   *
   * @param maxModelLen tokens of the longest sequence
   */
  public long workspaceRows(int maxModelLen) {
    return path() == Path.SEPARATE ? WORKSPACE_CONTEXTS * maxModelLen : 0;
  }
}

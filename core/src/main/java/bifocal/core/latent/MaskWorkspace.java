package bifocal.core.latent;

/** Memory of the bit masks by which dense prefill attends only to keys that were chosen. */
public final class MaskWorkspace {
  /** Bytes that are set aside. */
  public static final long BYTES = 128L << 20;

  private static final int SMALL_TILE = 128;
  private static final int LARGE_TILE = 256;

  private MaskWorkspace() {}

  /**
   * Bytes of the masks of a batch: a bit for each query and key, in words of 32.
   *
   * @param queries query tokens of the longest request
   * @param context rows of the longest chunk of earlier context
   */
  public static long bytes(int batch, int queries, int context) {
    int tile = queries <= SMALL_TILE ? SMALL_TILE : LARGE_TILE;
    long rows = (long) Math.ceilDiv(queries, tile) * tile;
    long words = Math.ceilDiv(Math.max(queries, context), Integer.SIZE);
    return Math.multiplyExact(Math.multiplyExact(batch * rows, words), Integer.BYTES);
  }

  /** Whether the masks of a batch fit. */
  public static boolean fits(int batch, int queries, int context) {
    return bytes(batch, queries, context) <= BYTES;
  }
}

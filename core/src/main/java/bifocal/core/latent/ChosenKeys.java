package bifocal.core.latent;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.control.Option;
import java.util.Arrays;

/**
 * Keys that an indexer chose for each query token, as slots of a cache. An entry of -1 is no key.
 *
 * @param perToken entries of a token
 * @param slots {@code [tokens, perToken]}, row-major
 * @param counts keys of each token; absent when nobody asked for them
 */
public record ChosenKeys(int perToken, long[] slots, Option<int[]> counts) {
  /** An entry without a key. */
  public static final int NONE = -1;

  /** Entries of a token must be a multiple of this, as kernels read so many at a time. */
  public static final int TILE = 128;

  private static final int WINDOW_STEP = 64;

  /**
   * Where the chosen positions of each token lie.
   *
   * @param blockTable block table of the batch, {@code [requests][blocks]}
   * @param blockSize tokens of a block
   * @param sharing how sequences are shared among ranks; keys of other ranks become no key
   * @param rank this rank
   */
  public record Cache(int[][] blockTable, int blockSize, SharedSequence sharing, int rank) {

    /** The cache of a rank that has its sequences alone. */
    public static Cache alone(int[][] blockTable, int blockSize) {
      return new Cache(blockTable, blockSize, SharedSequence.ALONE, 0);
    }

    private long slot(int request, int position) {
      if (position < 0 || sharing.rank(position) != rank) {
        return NONE;
      }
      int local = sharing.ranks() == 1 ? position : sharing.local(position);
      int[] blocks = blockTable[request];
      int block = local / blockSize;
      return block < blocks.length ? (long) blocks[block] * blockSize + local % blockSize : NONE;
    }
  }

  /**
   * Turns positions inside requests into slots.
   *
   * @param requests request of each token
   * @param positions {@code [tokens, perToken]}, row-major, -1 for no key, in any order
   * @param counting whether keys are counted, for kernels that read the first so many entries
   * @throws BifocalException {@code SHAPE_MISMATCH} when requests and positions are not of the same
   *     tokens, or a token's entries do not fill tiles; {@code BLOCK_TABLE_TOO_SHORT} for a request
   *     without a row
   */
  public static ChosenKeys of(
      Cache cache, int[] requests, int[] positions, int perToken, boolean counting) {
    requireRows(requests, positions, perToken);
    long[] slots = new long[positions.length];
    for (int token = 0; token < requests.length; token++) {
      int request = requests[token];
      if (request < 0 || request >= cache.blockTable().length) {
        throw BifocalException.of(
            ErrorCode.BLOCK_TABLE_TOO_SHORT,
            "request of token " + token,
            request,
            "0.." + (cache.blockTable().length - 1));
      }
      for (int i = token * perToken; i < (token + 1) * perToken; i++) {
        slots[i] = cache.slot(request, positions[i]);
      }
    }
    return new ChosenKeys(
        perToken, slots, Option.when(counting, () -> counted(slots, perToken, requests.length)));
  }

  private static void requireRows(int[] requests, int[] positions, int perToken) {
    if (perToken < 1 || perToken % TILE != 0) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "chosen keys of a token", perToken, "a multiple of " + TILE);
    }
    if ((long) requests.length * perToken != positions.length) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "request numbers and chosen keys must cover the same tokens",
          requests.length + " requests, " + (double) positions.length / perToken + " rows of keys",
          "equally many");
    }
  }

  private static int[] counted(long[] slots, int perToken, int tokens) {
    int[] counts = new int[tokens];
    for (int i = 0; i < slots.length; i++) {
      counts[i / perToken] += slots[i] == NONE ? 0 : 1;
    }
    return counts;
  }

  /** The same keys, those of each token in front of its empty entries, and counted. */
  public ChosenKeys compacted() {
    int tokens = slots.length / perToken;
    long[] compact = new long[slots.length];
    Arrays.fill(compact, NONE);
    for (int token = 0; token < tokens; token++) {
      int next = token * perToken;
      for (int i = token * perToken; i < (token + 1) * perToken; i++) {
        if (slots[i] != NONE) {
          compact[next++] = slots[i];
        }
      }
    }
    return new ChosenKeys(perToken, compact, Option.some(counted(slots, perToken, tokens)));
  }

  /**
   * Keys that a window kernel must be able to take for each query, in whole steps of 64: those of
   * the window, and where queries see each other both ways those that were drafted behind it.
   *
   * @param window keys of the window
   * @param speculativeTokens tokens drafted per request
   */
  public static int ofWindow(int window, boolean causal, int speculativeTokens) {
    int keys = causal ? window : Math.addExact(window, speculativeTokens);
    return Math.multiplyExact(Math.ceilDiv(keys, WINDOW_STEP), WINDOW_STEP);
  }
}

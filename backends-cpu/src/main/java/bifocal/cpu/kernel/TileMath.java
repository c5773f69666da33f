package bifocal.cpu.kernel;

import bifocal.cpu.cache.KernelType;

/**
 * The inner loops of attention over one tile: rows of queries times a stretch of keys, all in fp32.
 * Strides are in bytes, addresses are native.
 */
public interface TileMath {
  /** What computes, for logs and reports. */
  String name();

  /** Rows that {@link #scores} and {@link #accumulate} take best at once. */
  int rowBlock();

  /** Keys in one lane group; a panel of keys is four groups. Divides 16. */
  int lanes();

  /**
   * Dot products of queries and one panel of keys: {@code s[r][v * lanes + j] = q[r] . k}, where
   * key {@code j} of group {@code v} has dimension {@code d} at {@code kv + 64 * d + 4 * j}.
   *
   * @param rows at most {@link #rowBlock}
   */
  void scores(
      long q,
      long qStride,
      int rows,
      long k0,
      long k1,
      long k2,
      long k3,
      int headSize,
      long s,
      long sStride);

  /** {@code s[i] = cap * tanh(s[i] / cap)} for {@code i} in {@code from .. to - 1}. */
  void softcap(long s, int from, int to, float cap);

  /** {@code s[i] += slope * (i + offset)} for {@code i} in {@code from .. to - 1}. */
  void alibi(long s, int from, int to, float slope, int offset);

  /**
   * One row's step of the running softmax: replaces scores {@code from .. to - 1} by their weights
   * relative to the new maximum, zeroes the rest of {@code zeroFrom .. zeroTo - 1}, and updates the
   * maximum and the sum. Scores outside {@code from .. to - 1} may be anything, NaN included.
   *
   * @param state address of the maximum and, behind it, the sum; maximum -inf when nothing was seen
   * @return factor for what was accumulated before
   */
  float weights(long s, int from, int to, int zeroFrom, int zeroTo, long state);

  /** {@code o[i] *= factor}; the count is a multiple of 16. */
  void scale(long o, int count, float factor);

  /**
   * {@code o[r][c] += sum over t of p[r][t] * v[t][c]}.
   *
   * @param rows at most {@link #rowBlock}
   * @param columns at most 64, a multiple of 16
   */
  void accumulate(
      long o,
      long oStride,
      int rows,
      long p,
      long pStride,
      long v,
      long vStride,
      int count,
      int columns);

  /**
   * Sixteen packed keys as fp32: {@code out[d * 16 + j]}.
   *
   * @param scales address of the sixteen scales of a per-token-head type, else ignored
   */
  void keys(KernelType type, long packed, long scales, int headSize, long out);

  /**
   * Packed values as fp32 rows, in whole pairs of tokens.
   *
   * @param scales address of the tokens' scales of a per-token-head type, else ignored
   * @param count tokens
   * @param outStride bytes from row to row; what lies behind a row's elements is zeroed
   */
  void values(
      KernelType type,
      long packed,
      long scales,
      int count,
      int headSizeV,
      long out,
      long outStride);

  /**
   * Whether the two methods below take packed elements of a type for so many rows, without a detour
   * over fp32.
   */
  boolean readsPairs(KernelType type, int rows);

  /** As {@link #scores}, over packed keys: a word holds two dimensions of a key. */
  void pairScores(
      long q,
      long qStride,
      int rows,
      long k0,
      long k1,
      long k2,
      long k3,
      int headSize,
      long s,
      long sStride);

  /**
   * As {@link #accumulate}, over packed values: a word holds one column of two tokens.
   *
   * @param vStride bytes from one pair of tokens to the next
   * @param pairs pairs of tokens
   */
  void accumulatePairs(
      long o,
      long oStride,
      int rows,
      long p,
      long pStride,
      long v,
      long vStride,
      int pairs,
      int columns);
}

package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.Arrays;

/**
 * Factors that turn cached numbers back into keys and values. They belong to the cache's contract,
 * so writer and readers cannot disagree. Per-token-head scales lie in the cache itself.
 */
public sealed interface KvScales {
  /** Both scales are 1. */
  KvScales ONE = new PerTensor(1f, 1f);

  /** Scale of keys of a head. */
  float key(int kvHead);

  /** Scale of values of a head. */
  float value(int kvHead);

  /** Whether every scale is 1. */
  boolean isOne();

  /** One scale for all keys and one for all values; finite and positive. */
  record PerTensor(float k, float v) implements KvScales {
    public PerTensor {
      requireScale(k);
      requireScale(v);
    }

    @Override
    public float key(int kvHead) {
      return k;
    }

    @Override
    public float value(int kvHead) {
      return v;
    }

    @Override
    public boolean isOne() {
      return k == 1f && v == 1f;
    }
  }

  /** One scale per KV head; finite and positive. */
  final class PerHead implements KvScales {
    private final float[] k;
    private final float[] v;

    /**
     * @throws BifocalException {@code SHAPE_MISMATCH} when the lengths differ
     */
    public PerHead(float[] k, float[] v) {
      if (k.length != v.length) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "value scales per head", v.length, k.length);
      }
      this.k = k.clone();
      this.v = v.clone();
      for (int head = 0; head < k.length; head++) {
        requireScale(k[head]);
        requireScale(v[head]);
      }
    }

    /** Number of heads. */
    public int heads() {
      return k.length;
    }

    @Override
    public float key(int kvHead) {
      return k[kvHead];
    }

    @Override
    public float value(int kvHead) {
      return v[kvHead];
    }

    @Override
    public boolean isOne() {
      boolean one = true;
      for (int head = 0; head < k.length; head++) {
        one &= k[head] == 1f && v[head] == 1f;
      }
      return one;
    }

    @Override
    public boolean equals(Object other) {
      return other instanceof PerHead that && Arrays.equals(k, that.k) && Arrays.equals(v, that.v);
    }

    @Override
    public int hashCode() {
      return 31 * Arrays.hashCode(k) + Arrays.hashCode(v);
    }
  }

  private static void requireScale(float scale) {
    if (!Float.isFinite(scale)) {
      throw BifocalException.of(ErrorCode.NOT_FINITE, "KV scale", scale, "a finite number");
    }
    if (scale <= 0) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "KV scale", scale, "a positive number");
    }
  }
}

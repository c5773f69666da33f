package bifocal.core.capsule;

import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/** A cache's scales as far as a file can say them: one for keys, one for values. */
record CacheScales(float k, float v) {
  static CacheScales of(KvScales scales) {
    if (scales.equals(KvScales.ONE)) {
      return new CacheScales(1, 1);
    }
    if (scales instanceof KvScales.PerTensor tensor) {
      return new CacheScales(tensor.k(), tensor.v());
    }
    throw BifocalException.of(
        ErrorCode.UNSUPPORTED, "scales of a captured cache", scales, "none, or per tensor");
  }

  boolean one() {
    return k == 1 && v == 1;
  }
}

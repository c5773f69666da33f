package bifocal.reference;

import bifocal.core.cache.KvCacheSpec;
import java.lang.foreign.MemorySegment;

/** Keys and values as a cache's type keeps them: stored once by the layout, and loaded again. */
record StoredKeyValues(KeyValues exact, KvCacheSpec spec, MemorySegment block)
    implements KeyValues {
  @Override
  public void readKey(int request, int position, int kvHead, float[] key) {
    exact.readKey(request, position, kvHead, key);
    spec.layout().write(spec, block, 0, kvHead, key, new float[spec.headSizeV()]);
    spec.layout().readKey(spec, block, 0, kvHead, key);
  }

  @Override
  public void readValue(int request, int position, int kvHead, float[] value) {
    exact.readValue(request, position, kvHead, value);
    spec.layout().write(spec, block, 0, kvHead, new float[spec.headSize()], value);
    spec.layout().readValue(spec, block, 0, kvHead, value);
  }
}

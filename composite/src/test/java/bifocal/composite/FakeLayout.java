package bifocal.composite;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import java.lang.foreign.MemorySegment;

/** A layout that only has a name; nobody here reads a block's bytes. */
record FakeLayout(String name) implements KvLayout {
  @Override
  public long blockBytes(KvCacheSpec spec) {
    return 4L * spec.blockSize() * spec.numKvHeads() * (spec.headSize() + spec.headSizeV());
  }

  @Override
  public long valueOffset(KvCacheSpec spec) {
    return 4L * spec.blockSize() * spec.numKvHeads() * spec.headSize();
  }

  @Override
  public void write(
      KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key, float[] value) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void readKey(KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] key) {
    throw new UnsupportedOperationException();
  }

  @Override
  public void readValue(
      KvCacheSpec spec, MemorySegment block, int token, int kvHead, float[] value) {
    throw new UnsupportedOperationException();
  }
}

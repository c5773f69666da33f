package bifocal.conformance;

import bifocal.core.cache.KvCacheView;
import java.lang.foreign.Arena;

/** A cache whose memory was released. */
record ClosedCache(KvCacheView view) {

  /** As many blocks of the same contract as another cache has. */
  static ClosedCache like(KvCacheView cache) {
    try (Arena arena = Arena.ofConfined()) {
      return new ClosedCache(
          KvCacheView.wrap(
              arena.allocate(cache.numBlocks() * cache.spec().blockBytes(), 64),
              cache.spec(),
              cache.device(),
              cache.numBlocks(),
              cache.spec().blockBytes()));
    }
  }
}

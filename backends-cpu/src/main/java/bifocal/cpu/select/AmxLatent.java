package bifocal.cpu.select;

import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.latent.KvSplits;
import io.vavr.control.Option;

/**
 * What a call of {@code AMX_MLA} is made of, and what its cache write refuses. Prefills, too, run
 * over latents: queries are absorbed, and one kernel reads the cached context and the new tokens.
 */
public final class AmxLatent {
  private AmxLatent() {}

  /**
   * Into how many parts a decode cuts the keys of each sequence.
   *
   * @param longest keys of the longest sequence, in tokens
   * @param threads of the host that compute
   */
  public static int splits(int longest, int threads) {
    return KvSplits.ofBegunRuns(longest, threads);
  }

  /** What speaks against a type of cache, as it was asked for. */
  public static Option<InvalidReason> cacheType(KvCacheDtype asked) {
    return Option.when(
        asked != KvCacheDtype.AUTO,
        () ->
            new InvalidReason(
                ReasonCode.KV_CACHE_DTYPE,
                "AMX_MLA takes no kv_cache_dtype but auto, got " + asked.label(),
                asked,
                "auto"));
  }
}

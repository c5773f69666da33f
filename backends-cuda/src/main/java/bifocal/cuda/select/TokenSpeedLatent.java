package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.latent.LatentScales;
import bifocal.core.latent.QueryQuantization;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/** What a call of {@code TOKENSPEED_MLA}'s decode is made of, and what the kernel refuses. */
public final class TokenSpeedLatent {
  /** Query tokens of one request at most, those that were drafted included. */
  public static final int MOST_QUERY_TOKENS = 8;

  /** Queries come quantised. */
  public static final QueryQuantization QUERIES = QueryQuantization.BY_LAYER;

  private static final int BLACKWELL = 10;

  private TokenSpeedLatent() {}

  /** What is worth knowing of a layer's calls. */
  static Seq<String> remarks(AttentionRequest request) {
    return Sm.major(request.device()) == BLACKWELL
        ? LatentCacheTypes.queries(request, QUERIES)
        : Vector.empty();
  }

  /**
   * Factors of a call; the cache is always quantised.
   *
   * @param scale the layer's factor on {@code q·k}
   * @param query factor that turns quantised queries back
   * @param key factor that turns cached numbers back
   */
  public static LatentScales scales(double scale, double query, double key) {
    return LatentScales.quantized(scale, query, key);
  }

  /** What speaks against a type of query. */
  public static Option<InvalidReason> queryType(DType query) {
    return Features.when(
        query != DType.FP8_E4M3,
        ReasonCode.DTYPE,
        "TOKENSPEED_MLA runs fp8_e4m3 queries, got " + query.label(),
        query,
        "fp8_e4m3");
  }

  /** What speaks against a type of cache. */
  public static Option<InvalidReason> cacheType(KvCacheDtype cached) {
    return Features.when(
        cached != KvCacheDtype.FP8 && cached != KvCacheDtype.FP8_E4M3,
        ReasonCode.KV_CACHE_DTYPE,
        "TokenspeedMLAImpl requires an FP8 KV cache (--kv-cache-dtype fp8 or fp8_e4m3); got"
            + " kv_cache_dtype='"
            + cached.label()
            + "'.",
        cached,
        "fp8 or fp8_e4m3");
  }

  /** What speaks against decodes of so many query tokens per request. */
  public static Option<InvalidReason> queryTokens(long tokens) {
    return Features.when(
        tokens > MOST_QUERY_TOKENS,
        ReasonCode.COMBINATION,
        "TOKENSPEED_MLA decodes at most "
            + MOST_QUERY_TOKENS
            + " query tokens of a request, got "
            + tokens,
        tokens,
        "at most " + MOST_QUERY_TOKENS + " query tokens");
  }

  /** A decode verifies what was drafted, beside the token that is sure. */
  static Option<InvalidReason> drafts(AttentionRequest request, ResolvedVariant variant) {
    return queryTokens(1L + request.deployment().speculativeTokens());
  }
}

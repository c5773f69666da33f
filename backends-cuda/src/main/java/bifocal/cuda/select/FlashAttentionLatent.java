package bifocal.cuda.select;

import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import io.vavr.control.Option;

/**
 * Operands of {@code FLASH_ATTN_MLA}'s call of FlashAttention 3: the rotary parts are query and
 * key, the latents are values, and the absorbed query is an operand of its own.
 *
 * @param query rotary part of a query row of latent and rotary elements
 * @param key rotary part of a cached row
 * @param value latent part of a cached row
 * @param latentQuery absorbed part of a query row
 */
public record FlashAttentionLatent(Slice query, Slice key, Slice value, Slice latentQuery) {

  /**
   * Neighbouring elements of a row.
   *
   * @param first the first one
   * @param elements how many
   */
  public record Slice(int first, int elements) {}

  /** Operands of a layer, whose rows are latent elements and rotary ones behind them. */
  public static FlashAttentionLatent of(AttentionLayerSpec.Mla layer) {
    Slice latent = new Slice(0, layer.kvLoraRank());
    Slice rotary = new Slice(layer.kvLoraRank(), layer.qkRopeHeadDim());
    return new FlashAttentionLatent(rotary, rotary, latent, latent);
  }

  /** What speaks against a type of cache. */
  public static Option<InvalidReason> cacheType(KvCacheDtype cached) {
    return Features.when(
        LatentCacheTypes.quantized(cached),
        ReasonCode.KV_CACHE_DTYPE,
        "FlashAttnMLA V1 with FP8 KV cache not yet supported",
        cached,
        "auto, float16 or bfloat16");
  }

  /**
   * Turns the log-sum-exp as the call returns it into that of everybody else.
   *
   * @param byHead {@code [heads, tokens]}, row-major
   * @return {@code [tokens, heads]}, row-major
   * @throws BifocalException {@code SHAPE_MISMATCH} when it has another number of elements
   */
  public static float[] logSumExpByToken(float[] byHead, int heads, int tokens) {
    if ((long) heads * tokens != byHead.length) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "log-sum-exp",
          byHead.length + " elements",
          heads + " heads of " + tokens + " tokens");
    }
    float[] byToken = new float[byHead.length];
    for (int head = 0; head < heads; head++) {
      for (int token = 0; token < tokens; token++) {
        byToken[token * heads + head] = byHead[head * tokens + token];
      }
    }
    return byToken;
  }
}

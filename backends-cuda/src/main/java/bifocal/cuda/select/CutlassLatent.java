package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.latent.QueryQuantization;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/** What a call of {@code CUTLASS_MLA}'s decode kernel is made of, and what the kernel refuses. */
public final class CutlassLatent {
  /** Query heads that every call has. */
  public static final int HEADS = 128;

  /** Bytes of the workspace. */
  public static final long WORKSPACE_BYTES = 128L << 20;

  /** Variable of the environment that says into how many parts keys are cut. */
  public static final String FORCED_SPLITS = "FORCE_NUM_KV_SPLITS";

  private static final int LATENT = 512;
  private static final int ROPE = 64;
  private static final int BLACKWELL = 10;

  private CutlassLatent() {}

  /** What is worth knowing of a layer's calls. */
  static Seq<String> remarks(AttentionRequest request) {
    return Sm.major(request.device()) == BLACKWELL
        ? LatentCacheTypes.queries(request, QueryQuantization.BY_LAYER).appendAll(ofSizes(request))
        : Vector.empty();
  }

  private static Seq<String> ofSizes(AttentionRequest request) {
    int heads = request.layer().numHeads();
    return Vector.of(
            LatentShape.of(request).flatMap(CutlassLatent::dimensions).map(InvalidReason::text),
            Option.when(
                heads < HEADS, () -> heads + " query heads are padded to " + paddedHeads(heads)))
        .flatMap(remark -> remark);
  }

  /**
   * Query heads of a call for a layer's; those beyond the layer's are padding.
   *
   * @throws BifocalException {@code UNSUPPORTED} for more heads than a call has
   */
  public static int paddedHeads(int heads) {
    if (heads < 1 || heads > HEADS) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED, "query heads of CUTLASS_MLA", heads, "1 to " + HEADS);
    }
    return HEADS;
  }

  /** Type of the output for a type of query. */
  public static DType output(DType query) {
    return query == DType.FP8_E4M3 ? DType.BF16 : query;
  }

  /** What the kernel says of a layer that is selected by its head size alone. */
  public static Option<InvalidReason> dimensions(AttentionLayerSpec.Mla layer) {
    return Features.when(
        layer.kvLoraRank() != LATENT || layer.qkRopeHeadDim() != ROPE,
        ReasonCode.COMBINATION,
        "CUTLASS_MLA runs kv_lora_rank=512 with qk_rope_head_dim=64",
        layer.kvLoraRank() + " and " + layer.qkRopeHeadDim(),
        "512 and 64");
  }

  /**
   * What speaks against scales of quantised queries and latents.
   *
   * @param query factor that turns quantised queries back
   * @param key factor that turns cached numbers back
   */
  public static Option<InvalidReason> scales(double query, double key) {
    return Features.when(
        query != 1 || key != 1,
        ReasonCode.KV_SCALES,
        "CutlassMLAImpl does not support scaling for q and kv_latent yet",
        query + " and " + key,
        "1 and 1");
  }

  /**
   * Into how many parts keys are cut; absent where the kernel decides.
   *
   * @param forced value of {@link #FORCED_SPLITS}
   * @throws BifocalException {@code INVALID_OPTION} when it is no positive number
   */
  public static Option<Integer> splits(Option<String> forced) {
    return forced.map(CutlassLatent::positive);
  }

  private static int positive(String text) {
    String digits = text.strip();
    if (!digits.matches("0*[1-9]\\d{0,5}")) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION, FORCED_SPLITS, "'" + text + "'", "a positive number");
    }
    return Integer.parseInt(digits);
  }
}

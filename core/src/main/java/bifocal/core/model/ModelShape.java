package bifocal.core.model;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * The attention shapes of one public model.
 *
 * @param id how users name it
 * @param family how its makers name it
 * @param layers number of layers, absent when unknown
 * @param kinds layer kinds in the order in which a model first has them; empty when unknown
 * @param mmPrefix which tokens see each other both ways
 * @param imageTokens tokens of one image unless the caller chooses, absent when dynamic or none
 * @param maxContext longest sequence, absent when unknown
 * @param latent sizes of latent attention, absent for other models
 * @param sparse how keys are chosen, absent when all are seen
 * @param unconfirmed fields that were not read in a configuration or framework code
 */
public record ModelShape(
    String id,
    String family,
    Option<Integer> layers,
    Seq<Kind> kinds,
    MmPrefix mmPrefix,
    Option<Integer> imageTokens,
    Option<Integer> maxContext,
    Option<Latent> latent,
    Option<Sparse> sparse,
    Seq<String> unconfirmed) {

  /** Which tokens of a prompt see each other both ways. */
  public enum MmPrefix {
    /** None. */
    NONE,
    /** Tokens of the same image. */
    VISION,
    /** The whole prompt. */
    PROMPT
  }

  /**
   * One kind of layer.
   *
   * @param name {@code sliding}, {@code full} or {@code chunked}
   * @param share layers of this kind in each repetition of the pattern
   * @param mask declared mask
   * @param scale factor on {@code q·k}
   * @param softcap cap on logits, absent when none
   */
  public record Kind(
      String name,
      int share,
      int numHeads,
      int numKvHeads,
      int headSize,
      int headSizeV,
      AttentionMask mask,
      double scale,
      Option<Double> softcap,
      boolean sinks) {}

  /** Sizes of latent attention, before absorption. */
  public record Latent(
      int kvLoraRank, int qkNopeHeadDim, int qkRopeHeadDim, int vHeadDim, int cachedHeadSize) {}

  /**
   * How keys are chosen.
   *
   * @param kind name of the scheme
   * @param topk keys or blocks chosen per query
   * @param blockTokens tokens per scored block, absent when single keys are chosen
   */
  public record Sparse(String kind, int topk, Option<Integer> blockTokens) {}

  /** Whether some layer kind lets images see their own future. */
  public boolean seesImages() {
    return kinds.exists(kind -> kind.mask().seesImages());
  }

  /**
   * The model's dense layer groups, one for each kind.
   *
   * @param layersPerGroup layers in each group
   * @throws BifocalException {@code UNSUPPORTED} when shapes are unknown, attention is latent, or
   *     queries see only blocks that are chosen
   */
  public Seq<LayerGroup> denseGroups(DType dtype, KvCacheDtype kvCacheDtype, int layersPerGroup) {
    boolean chosen = sparse.exists(choice -> choice.blockTokens().isDefined());
    if (latent.isDefined() || chosen || kinds.isEmpty()) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED,
          "dense layers of " + id,
          latent.isDefined()
              ? "latent attention"
              : chosen ? "attention over chosen blocks" : "unknown shapes",
          "known dense shapes");
    }
    return kinds.map(
        kind ->
            new LayerGroup(
                kind.name(),
                dense(kind, dtype, kvCacheDtype),
                Vector.range(0, layersPerGroup).map(layer -> kind.name() + "." + layer)));
  }

  private static AttentionLayerSpec.Dense dense(Kind kind, DType dtype, KvCacheDtype kvCacheDtype) {
    return new AttentionLayerSpec.Dense(
        kind.numHeads(),
        kind.numKvHeads(),
        kind.headSize(),
        kind.headSizeV(),
        dtype,
        kvCacheDtype,
        AttentionType.DECODER,
        kind.mask(),
        kind.scale(),
        kind.softcap(),
        false,
        kind.sinks());
  }

  /** The same model whose image masks, where there are any, join in another way. */
  public ModelShape withImageMask(ImageMask mode) {
    Seq<Kind> masked =
        kinds.map(
            kind ->
                kind.mask().seesImages()
                    ? new Kind(
                        kind.name(),
                        kind.share(),
                        kind.numHeads(),
                        kind.numKvHeads(),
                        kind.headSize(),
                        kind.headSizeV(),
                        kind.mask().withImages(mode),
                        kind.scale(),
                        kind.softcap(),
                        kind.sinks())
                    : kind);
    return new ModelShape(
        id, family, layers, masked, mmPrefix, imageTokens, maxContext, latent, sparse, unconfirmed);
  }
}

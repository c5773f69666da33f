package bifocal.core.backend;

import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.Comparator;
import java.util.function.Function;

/**
 * The agreement between everyone who touches one cache, made once and before memory is allocated:
 * its writer, its readers, and whoever else writes in passing, such as a fused rotary kernel. Each
 * states sets; the contract is what lies in all of them.
 */
public final class KvContract {
  /** Block size when nobody asks for one and every party runs it. */
  public static final int DEFAULT_BLOCK_SIZE = 16;

  private KvContract() {}

  /**
   * Someone who writes or reads the cache.
   *
   * @param role how reasons call it, for instance {@code writer FLEX_ATTENTION}
   * @param features what it can do, of the very variant that will run
   */
  public record Party(String role, FeatureSet features) {
    /** The party that writes the cache. */
    public static Party writer(AttentionBackend<?> backend, AttentionRequest request) {
      return new Party("writer " + backend.name(), backend.capabilities(request).all());
    }

    /** A party that reads the cache. */
    public static Party reader(AttentionBackend<?> backend, AttentionRequest request) {
      return new Party("reader " + backend.name(), backend.capabilities(request).all());
    }

    private boolean runs(KvCacheDtype resolved, AttentionLayerSpec layer) {
      return features.kvCacheDtypes().contains(resolved)
          || features.kvCacheDtypes().exists(d -> d.resolve(layer.dtype()) == resolved);
    }

    private boolean knows(KvLayout layout) {
      return features.kvLayouts().exists(l -> l.name().equals(layout.name()));
    }
  }

  /**
   * Resolves the contract of a layer group's cache.
   *
   * <p>The contract's block size is the block that kernels see. A host whose block table counts
   * larger pages hands its kernels a table of kernel blocks; see {@link
   * bifocal.core.cache.PageTable}.
   *
   * @param layer what each layer of the group asks; the type {@code auto} is resolved first
   * @param scales factors of quantised numbers
   * @param page tokens per block of the host's block table, if it or the user has fixed one
   * @return the contract, or every reason against it, naming roles and their sets
   */
  public static Validation<Seq<InvalidReason>, KvCacheSpec> resolve(
      Party writer,
      Seq<Party> readers,
      AttentionLayerSpec layer,
      KvScales scales,
      Option<Integer> page) {
    Seq<Party> parties = readers.prepend(writer);
    return Validation.combine(
            layouts(parties),
            dtype(parties, layer),
            scales(parties, layer, scales),
            blockSize(parties, page))
        .ap(
            (layouts, dtype, agreed, blockSize) ->
                firstWithoutObjection(layouts, layer, dtype, agreed, blockSize))
        .mapError(errors -> errors.flatMap(reasons -> reasons))
        .flatMap(spec -> spec);
  }

  /** Layouts of all parties: what most of them prefer comes first, then the writer's order. */
  private static Validation<Seq<InvalidReason>, Seq<KvLayout>> layouts(Seq<Party> parties) {
    Seq<KvLayout> common = commonLayouts(parties);
    if (common.isEmpty()) {
      return invalid(
          ReasonCode.KV_LAYOUT,
          "no common KV cache layout: " + sets(parties, p -> names(p.features().kvLayouts())),
          "none",
          whoCouldYield(parties));
    }
    if (common.size() == 1) {
      return Validation.valid(common);
    }
    return Validation.valid(
        common.sorted(Comparator.comparingInt(layout -> -votes(parties, layout))));
  }

  private static Seq<KvLayout> commonLayouts(Seq<Party> parties) {
    return parties.head().features().kvLayouts().filter(l -> parties.forAll(p -> p.knows(l)));
  }

  private static int votes(Seq<Party> parties, KvLayout layout) {
    return parties.count(
        p -> p.features().kvLayouts().headOption().exists(l -> l.name().equals(layout.name())));
  }

  /** Names the parties each of which stands alone against a layout that all others share. */
  private static String whoCouldYield(Seq<Party> parties) {
    String alone =
        parties
            .zipWithIndex()
            .flatMap(
                at -> {
                  Seq<Party> others = parties.removeAt(at._2());
                  Seq<KvLayout> shared = others.isEmpty() ? Vector.empty() : commonLayouts(others);
                  return shared.isEmpty()
                      ? Option.<String>none()
                      : Option.some(names(shared) + " from " + at._1().role());
                })
            .mkString(", or ");
    return alone.isEmpty() ? "a layout that every party knows" : alone;
  }

  private static Validation<Seq<InvalidReason>, KvCacheDtype> dtype(
      Seq<Party> parties, AttentionLayerSpec layer) {
    KvCacheDtype resolved = layer.kvCacheDtype().resolve(layer.dtype());
    if (resolved == KvCacheDtype.AUTO) {
      return invalid(
          ReasonCode.KV_CACHE_DTYPE,
          "kv_cache_dtype auto cannot follow " + layer.dtype(),
          layer.dtype().label(),
          "a floating-point type");
    }
    Seq<InvalidReason> reasons =
        parties
            .filter(p -> !p.runs(resolved, layer))
            .map(
                p ->
                    new InvalidReason(
                        ReasonCode.KV_CACHE_DTYPE,
                        "kv_cache_dtype " + resolved + " not supported: " + set(p, dtypes(p)),
                        resolved.label(),
                        dtypes(p)));
    return reasons.isEmpty() ? Validation.valid(resolved) : Validation.invalid(reasons);
  }

  private static Validation<Seq<InvalidReason>, KvScales> scales(
      Seq<Party> parties, AttentionLayerSpec layer, KvScales scales) {
    if (scales.isOne()) {
      return Validation.valid(KvScales.ONE);
    }
    Seq<InvalidReason> reasons = parties.flatMap(p -> scaleReason(p, scales));
    if (layer.kvCacheDtype().perTokenHead()) {
      reasons =
          reasons.append(
              new InvalidReason(
                  ReasonCode.KV_SCALES,
                  "KV scales given for a cache that keeps its own",
                  layer.kvCacheDtype().label(),
                  "no scales"));
    }
    if (scales instanceof KvScales.PerHead perHead && perHead.heads() != layer.numKvHeads()) {
      reasons =
          reasons.append(
              new InvalidReason(
                  ReasonCode.KV_SCALES,
                  "KV scales of another number of heads",
                  Integer.toString(perHead.heads()),
                  Integer.toString(layer.numKvHeads())));
    }
    return reasons.isEmpty() ? Validation.valid(scales) : Validation.invalid(reasons);
  }

  private static Option<InvalidReason> scaleReason(Party party, KvScales scales) {
    Feature needed =
        switch (scales) {
          case KvScales.PerTensor perTensor -> Feature.KV_SCALES;
          case KvScales.PerHead perHead -> Feature.PER_HEAD_QUANT_SCALES;
        };
    return Option.when(
        !party.features().has(needed),
        () ->
            new InvalidReason(
                ReasonCode.KV_SCALES,
                "KV scales other than 1 not supported by " + party.role(),
                scales.toString(),
                "scales of 1"));
  }

  private static Validation<Seq<InvalidReason>, Integer> blockSize(
      Seq<Party> parties, Option<Integer> page) {
    BlockSizes common = parties.map(p -> p.features().blockSizes()).reduce(BlockSizes::intersect);
    if (common.isEmpty()) {
      return invalid(
          ReasonCode.BLOCK_SIZE,
          "no common kernel block size: " + blockSizes(parties),
          page.map(String::valueOf).getOrElse("none"),
          "sizes that every party runs");
    }
    Option<Integer> kernelBlock =
        page.isDefined()
            ? page.flatMap(common::kernelBlockFor)
            : Option.some(common.preferred(DEFAULT_BLOCK_SIZE));
    return kernelBlock.isDefined()
        ? Validation.valid(kernelBlock.get())
        : invalid(
            ReasonCode.BLOCK_SIZE,
            "block_size " + page.get() + " not supported: " + blockSizes(parties),
            Integer.toString(page.get()),
            common.toString());
  }

  private static Validation<Seq<InvalidReason>, KvCacheSpec> firstWithoutObjection(
      Seq<KvLayout> layouts,
      AttentionLayerSpec layer,
      KvCacheDtype dtype,
      KvScales scales,
      int blockSize) {
    Seq<InvalidReason> objections = Vector.empty();
    for (KvLayout layout : layouts) {
      KvCacheSpec spec =
          new KvCacheSpec(
              layout,
              dtype,
              blockSize,
              layer.numKvHeads(),
              layer.headSize(),
              layer.headSizeV(),
              scales);
      Option<String> objection = layout.objection(spec);
      if (objection.isEmpty()) {
        return Validation.valid(spec);
      }
      objections =
          objections.append(
              new InvalidReason(
                  ReasonCode.KV_LAYOUT,
                  "KV cache layout " + layout.name() + ": " + objection.get(),
                  "block " + blockSize + ", head " + layer.headSize() + "/" + layer.headSizeV(),
                  "sizes the layout can hold"));
    }
    return Validation.invalid(objections);
  }

  private static String blockSizes(Seq<Party> parties) {
    return sets(parties, party -> party.features().blockSizes().toString());
  }

  private static <T> Validation<Seq<InvalidReason>, T> invalid(
      ReasonCode code, String text, String seen, String wanted) {
    return Validation.invalid(Vector.of(new InvalidReason(code, text, seen, wanted)));
  }

  private static String sets(Seq<Party> parties, Function<Party, String> setOf) {
    return parties.map(p -> set(p, setOf.apply(p))).mkString(", ");
  }

  private static String set(Party party, String members) {
    return party.role() + " [" + members + "]";
  }

  private static String names(Seq<KvLayout> layouts) {
    return layouts.isEmpty() ? "none" : layouts.map(KvLayout::name).mkString(", ");
  }

  private static String dtypes(Party party) {
    return party.features().kvCacheDtypes().isEmpty()
        ? "none"
        : party.features().kvCacheDtypes().mkString(", ");
  }
}

package bifocal.cuda.flashattention;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.Execution;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.backend.ResolvesVariants;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayouts;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.select.FeatureRow;
import bifocal.core.select.Tabulated;
import bifocal.core.tensor.DType;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.cuda.pack.ServedLayer;
import bifocal.cuda.select.FlashAttention;
import bifocal.cuda.triton.KvWriter;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * {@code FLASH_ATTN}: of its versions, version 4 on 9.0, over forwards that were compiled from
 * FlashAttention 4's package. The cache is written by this project's own kernel.
 */
public final class FlashAttentionBackend
    implements AttentionBackend<FlashAttentionMetadata>, ResolvesVariants, Tabulated {
  /** Its name. */
  public static final BackendName NAME = FlashAttention.NAME;

  private static final String VERSION_4 = "FA4";
  private static final int USUAL_BLOCK = 64;

  private static final Execution WITH_PACK =
      new Execution(
          Execution.Status.NATIVE_WITH_PACK,
          "FLASH_ATTENTION_PACK: version 4 on 9.0, forwards of "
              + ForwardManifest.PACKAGE
              + " "
              + ForwardManifest.VERSION
              + ", of bf16 and fp16, with head sizes up to 256 (of Gemma 4 the sliding layers); the pack of"
              + " TRITON_ATTN writes the cache, and the user installs NVIDIA's"
              + " libcute_dsl_runtime");

  private static final Execution OTHER_VERSIONS =
      new Execution(
          Execution.Status.NOT_HERE,
          "FLASH_ATTENTION_LIBRARY: this version's kernels behind a C interface; packages bring them"
              + " with PyTorch only");

  /** What runs here and the reference does not say. */
  private static final FeatureSet EXTENSIONS =
      FeatureSet.NONE
          .withFeatures(
              Feature.NON_CAUSAL,
              Feature.NON_CAUSAL_LEFT_WINDOW,
              Feature.LSE,
              Feature.INDIRECT_REQUESTS)
          .withKvLayouts(KvLayouts.NHD, KvLayouts.HND);

  private static final Capabilities CAPABILITIES =
      extended(FlashAttention.DECLARATION.capabilities());

  private final ForwardHost host;

  /** A backend over the forwards of a host, which it looks for when they are first needed. */
  public FlashAttentionBackend(ForwardHost host) {
    this.host = host;
  }

  @Override
  public BackendName name() {
    return NAME;
  }

  @Override
  public Seq<FeatureRow> rows() {
    return FlashAttention.DECLARATION.rows();
  }

  /** Of the rows, version 4's alone has kernels. */
  @Override
  public Option<Execution> execution(FeatureRow row) {
    return Option.when(!row.version().equals(VERSION_4), OTHER_VERSIONS);
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  /** On a host with forwards, block sizes are theirs. */
  @Override
  public Capabilities capabilities(AttentionRequest request) {
    Capabilities declared = FlashAttention.DECLARATION.variant(request).capabilities();
    if (request.device().simulated()
        || host.device().isInvalid()
        || !(request.layer() instanceof AttentionLayerSpec.Dense layer)) {
      return declared;
    }
    Seq<Integer> sizes = host.require().pack().pageSizes(layer);
    Capabilities extended = extended(declared);
    return sizes.isEmpty() ? extended : limited(extended, sizes);
  }

  private static Capabilities extended(Capabilities declared) {
    return new Capabilities(declared.reference(), declared.extensions().union(EXTENSIONS));
  }

  private static Capabilities limited(Capabilities declared, Seq<Integer> sizes) {
    BlockSizes exact = BlockSizes.exactly(sizes.toJavaArray(Integer[]::new));
    return new Capabilities(
        limited(declared.reference(), exact), limited(declared.extensions(), exact));
  }

  private static FeatureSet limited(FeatureSet features, BlockSizes sizes) {
    return features.equals(FeatureSet.NONE)
        ? features
        : features.withBlockSizes(sizes.intersect(features.blockSizes()));
  }

  @Override
  public ResolvedVariant variant(AttentionRequest request) {
    return FlashAttention.DECLARATION.variant(request);
  }

  @Override
  public Option<InvalidReason> checkCombination(AttentionRequest request) {
    return FlashAttention.DECLARATION.objection(request);
  }

  @Override
  public Option<InvalidReason> missingOnThisHost(AttentionRequest request) {
    return switch (request.layer()) {
      case AttentionLayerSpec.Dense dense -> missing(dense, request).map(this::notHere);
      case AttentionLayerSpec.Mla mla -> Option.some(notHere("no forwards of latent layers"));
      case AttentionLayerSpec.SparseMla sparse ->
          Option.some(notHere("no forwards of latent layers"));
      case AttentionLayerSpec.BlockSparse sparse ->
          Option.some(notHere("no forwards of block-sparse layers"));
    };
  }

  private Option<String> missing(AttentionLayerSpec.Dense layer, AttentionRequest request) {
    return otherVersion(request)
        .orElse(() -> deployment(request))
        .orElse(() -> objection(layer))
        .orElse(
            () ->
                host.device()
                    .fold(
                        why -> Option.some(why.getMessage()),
                        device -> missingFromPacks(device, layer, request)));
  }

  private static Option<String> otherVersion(AttentionRequest request) {
    String version = FlashAttention.DECLARATION.variant(request).version();
    return Option.when(
        !version.equals(VERSION_4),
        () ->
            "only version 4 is built here, and "
                + (version.isEmpty() ? "none" : version)
                + " serves this layer; flash_attn_version 4 asks for it");
  }

  private static Option<String> deployment(AttentionRequest request) {
    return Option.when(
        request.deployment().batchInvariant()
            || request.deployment().rswa()
            || request.deployment().alibiSqrt(),
        "no forwards for batch invariance, R-SWA or ALiBi of square roots");
  }

  private static Option<String> missingFromPacks(
      ForwardDevice device, AttentionLayerSpec.Dense layer, AttentionRequest request) {
    int page =
        request
            .blockSize()
            .orElse(() -> device.pack().pageSizes(layer).headOption())
            .getOrElse(USUAL_BLOCK);
    return device
        .pack()
        .missing()
        .orElse(() -> device.pack().lacks(ForwardKey.allOf(layer, page)))
        .orElse(() -> KvWriter.missing(device.kernels(), layer))
        .map(refusal -> refusal.line());
  }

  /** What no forward computes. */
  private static Option<String> objection(AttentionLayerSpec.Dense layer) {
    if (layer.mask().seesImages() || layer.mask().chunk().isDefined()) {
      return Option.some("images and chunks are not read by these forwards");
    }
    if (layer.sinks() || layer.alibi() || layer.softcap().isDefined()) {
      return Option.some("no forwards with sinks, ALiBi or a soft cap");
    }
    if (!layer.mask().causal() && layer.mask().window().isDefined()) {
      return Option.some("no forwards with a window on both sides");
    }
    if (layer.type() != AttentionType.DECODER || layer.headSizeV() != layer.headSize()) {
      return Option.some("no forwards but for decoders whose keys and values have one head size");
    }
    boolean plain =
        (layer.dtype() == DType.BF16 || layer.dtype() == DType.FP16)
            && layer.kvCacheDtype().resolve(layer.dtype()).elementType().contains(layer.dtype());
    return Option.when(
        !plain, "no forwards for a cache of " + layer.kvCacheDtype() + " and " + layer.dtype());
  }

  private InvalidReason notHere(String why) {
    return new InvalidReason(
        ReasonCode.NOT_ON_THIS_HOST,
        "kernels not on this host: " + why,
        name().value(),
        "a device of 9.0, FlashAttention forwards and a kernel pack for it");
  }

  @Override
  public Execution execution() {
    return WITH_PACK;
  }

  /** Steps are not captured here. */
  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return GraphSupport.NEVER;
  }

  @Override
  public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    return FlashAttentionBuilder.workspace(requireServed(group.spec(), cache), cache, limits);
  }

  @Override
  public AttentionMetadataBuilder<FlashAttentionMetadata> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    return new FlashAttentionBuilder(host.require(), requireServed(group.spec(), cache), cache);
  }

  @Override
  public AttentionImpl<FlashAttentionMetadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    return FlashAttentionImpl.of(host.require(), requireServed(layer, cache), cache);
  }

  /** The layer, if some forward could compute it; whether the pack has it is asked later. */
  private AttentionLayerSpec.Dense requireServed(AttentionLayerSpec layer, KvCacheSpec cache) {
    AttentionLayerSpec.Dense dense = ServedLayer.requireDense(name(), layer);
    Option<String> objection = objection(dense);
    if (objection.isDefined()) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED, "layer on " + name(), dense, objection.get());
    }
    ServedLayer.requireScaleAndHeads(name(), dense, cache);
    return dense;
  }

  @Override
  public String toString() {
    return name().value();
  }
}

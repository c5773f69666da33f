package bifocal.cuda.flashinfer;

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
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.select.FeatureRow;
import bifocal.core.select.Tabulated;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.pack.ServedLayer;
import bifocal.cuda.select.FlashInfer;
import bifocal.cuda.triton.KvWriter;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * {@code FLASHINFER}: causal and non-causal attention with a left window, over modules that were
 * built from FlashInfer's sources. The cache is written by this project's own kernel.
 */
public final class FlashInferBackend
    implements AttentionBackend<FlashInferMetadata>, ResolvesVariants, Tabulated {
  /** Its name. */
  public static final BackendName NAME = FlashInfer.NAME;

  private static final Execution WITH_PACK =
      new Execution(
          Execution.Status.NATIVE_WITH_PACK,
          "FLASHINFER_PACK: modules of flashinfer-python "
              + ModuleSignatures.VERSION
              + " for 9.0, of bf16 and fp16; the pack of TRITON_ATTN writes the cache");

  private static final Execution WITH_XQA =
      new Execution(
          Execution.Status.NATIVE_WITH_PACK,
          "FLASHINFER_PACK: modules of flashinfer-python "
              + ModuleSignatures.VERSION
              + " for 9.0, of bf16 and fp16, for one query a request; no log-sum-exps, a forward"
              + " that asks for them is run by the native kernels");

  private static final Execution NO_CUBINS =
      new Execution(
          Execution.Status.NOT_HERE,
          "FLASHINFER_CUBINS: trtllm-gen's kernels are for 10.x; modules that ask for them are given"
              + " the pack's files, and none is built");

  /** What runs here and the reference does not say. */
  private static final FeatureSet EXTENSIONS =
      FeatureSet.NONE
          .withFeatures(
              Feature.NON_CAUSAL,
              Feature.NON_CAUSAL_LEFT_WINDOW,
              Feature.LSE,
              Feature.INDIRECT_REQUESTS)
          .withKvLayouts(KvLayouts.NHD, KvLayouts.HND);

  private static final Capabilities CAPABILITIES = extended(FlashInfer.DECLARATION.capabilities());

  private final FlashInferHost host;
  private final DecodeKernels decode;

  /** A backend over the modules of a host, which it looks for when they are first needed. */
  public FlashInferBackend(FlashInferHost host) {
    this(host, DecodeKernels.XQA);
  }

  /** A backend that decodes by some kernels where it can. */
  public FlashInferBackend(FlashInferHost host, DecodeKernels decode) {
    this.host = host;
    this.decode = decode;
  }

  @Override
  public BackendName name() {
    return NAME;
  }

  @Override
  public Seq<FeatureRow> rows() {
    return FlashInfer.DECLARATION.rows();
  }

  @Override
  public Option<Execution> execution(FeatureRow row) {
    return switch (row.version()) {
      case "trtllm-gen" -> Option.some(NO_CUBINS);
      case "XQA" -> Option.some(WITH_XQA);
      default -> Option.none();
    };
  }

  @Override
  public Capabilities capabilities() {
    return CAPABILITIES;
  }

  @Override
  public Capabilities capabilities(AttentionRequest request) {
    Capabilities declared = FlashInfer.DECLARATION.variant(request).capabilities();
    return request.device().simulated() || host.device().isInvalid()
        ? declared
        : extended(declared);
  }

  private static Capabilities extended(Capabilities declared) {
    return new Capabilities(declared.reference(), declared.extensions().union(EXTENSIONS));
  }

  /** On a host with modules, their true names are among the remarks. */
  @Override
  public ResolvedVariant variant(AttentionRequest request) {
    ResolvedVariant variant = FlashInfer.DECLARATION.variant(request);
    if (request.device().simulated()
        || !(request.layer() instanceof AttentionLayerSpec.Dense layer)) {
      return variant;
    }
    return host.device()
        .map(device -> LayerModules.of(device.pack(), layer, request.blockSize().getOrElse(64)))
        .map(modules -> variant.noting(Vector.of("kernels: " + modules.label())))
        .getOrElse(variant);
  }

  /** Modules built here run windows on 9.0, which the reference's do not. */
  @Override
  public Option<InvalidReason> checkCombination(AttentionRequest request) {
    return request.device().simulated() || host.device().isInvalid()
        ? FlashInfer.DECLARATION.objection(request)
        : FlashInfer.WITH_WINDOWS.objection(request);
  }

  @Override
  public Option<InvalidReason> missingOnThisHost(AttentionRequest request) {
    return switch (request.layer()) {
      case AttentionLayerSpec.Dense dense -> missing(dense, request).map(this::notHere);
      case AttentionLayerSpec.Mla mla -> Option.some(notHere("no modules for latent layers"));
      case AttentionLayerSpec.SparseMla sparse ->
          Option.some(notHere("no modules for latent layers"));
      case AttentionLayerSpec.BlockSparse sparse ->
          Option.some(notHere("no modules for block-sparse layers"));
    };
  }

  private Option<String> missing(AttentionLayerSpec.Dense layer, AttentionRequest request) {
    return trtllm(request)
        .orElse(() -> deployment(request))
        .orElse(() -> objection(layer))
        .orElse(
            () ->
                host.device()
                    .fold(
                        why -> Option.some(why.getMessage()),
                        device -> missingFromPacks(device, layer, request).map(PackRefusal::line)));
  }

  private static Option<String> trtllm(AttentionRequest request) {
    boolean blackwell =
        request.device() instanceof DeviceProfile.Cuda cuda && cuda.capability().major() >= 10;
    return Option.when(blackwell, NO_CUBINS.reason());
  }

  private static Option<String> deployment(AttentionRequest request) {
    return Option.when(
        request.deployment().batchInvariant()
            || request.deployment().rswa()
            || request.deployment().alibiSqrt(),
        "no modules for batch invariance, R-SWA or ALiBi of square roots");
  }

  private static Option<PackRefusal> missingFromPacks(
      FlashInferDevice device, AttentionLayerSpec.Dense layer, AttentionRequest request) {
    return LayerModules.of(device.pack(), layer, request.blockSize().getOrElse(64))
        .missing(device.pack())
        .orElse(() -> KvWriter.missing(device.kernels(), layer));
  }

  /** What no module computes. */
  private static Option<String> objection(AttentionLayerSpec.Dense layer) {
    if (layer.mask().seesImages() || layer.mask().chunk().isDefined()) {
      return Option.some("images and chunks are not read by these modules");
    }
    if (layer.sinks() || layer.alibi()) {
      return Option.some("no modules with sinks or ALiBi");
    }
    if (!layer.mask().causal() && layer.mask().window().isDefined()) {
      return Option.some("no modules with a window on both sides");
    }
    if (layer.type() != AttentionType.DECODER || layer.headSizeV() != layer.headSize()) {
      return Option.some("no modules but for decoders whose keys and values have one head size");
    }
    boolean plain =
        layer.kvCacheDtype().resolve(layer.dtype()).elementType().contains(layer.dtype());
    return Option.when(
        !plain, "no modules for a cache of " + layer.kvCacheDtype() + " and " + layer.dtype());
  }

  private InvalidReason notHere(String why) {
    return new InvalidReason(
        ReasonCode.NOT_ON_THIS_HOST,
        "kernels not on this host: " + why,
        name().value(),
        "a CUDA device, FlashInfer modules and a kernel pack for it");
  }

  @Override
  public Execution execution() {
    return WITH_PACK;
  }

  @Override
  public GraphSupport graphSupport(LayerGroup group) {
    return FlashInferBuilder.GRAPHS;
  }

  @Override
  public WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    return FlashInferBuilder.workspace(
        host.require(), requireServed(group.spec(), cache), cache, limits);
  }

  @Override
  public AttentionMetadataBuilder<FlashInferMetadata> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    return new FlashInferBuilder(host.require(), requireServed(group.spec(), cache), cache, decode);
  }

  @Override
  public AttentionImpl<FlashInferMetadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    return FlashInferImpl.of(host.require(), requireServed(layer, cache), cache);
  }

  /** The layer, if some module could compute it; whether the pack has it is asked later. */
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

package bifocal.cuda.triton;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.ServedLayer;
import bifocal.cuda.pack.Specialisation;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/** What the two children share: they run the same kernels and differ in the masks these read. */
abstract sealed class TritonBackend implements AttentionBackend<TritonMetadata>
    permits TritonAttnBackend, TritonCausalBackend {
  private final TritonHost host;
  private final TritonVariant variant;

  TritonBackend(TritonHost host, TritonVariant variant) {
    this.host = host;
    this.variant = variant;
  }

  /** What the kernels can do of a layer's mask and numbers. */
  abstract Option<InvalidReason> objection(AttentionLayerSpec.Dense layer);

  /** Block sizes are those of the pack, on a host that was probed and has one. */
  final Capabilities onThisHost(Capabilities declared, AttentionRequest request) {
    if (request.device().simulated() || !(request.layer() instanceof AttentionLayerSpec.Dense)) {
      return declared;
    }
    Seq<Integer> sizes =
        host.device().fold(why -> Vector.empty(), d -> blockSizes(d.pack(), request));
    if (sizes.isEmpty()) {
      return declared;
    }
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
  public final Option<InvalidReason> missingOnThisHost(AttentionRequest request) {
    return switch (request.layer()) {
      case AttentionLayerSpec.Dense dense -> missing(dense, request);
      case AttentionLayerSpec.Mla mla -> Option.some(notHere("no kernels for latent layers"));
      case AttentionLayerSpec.SparseMla sparse ->
          Option.some(notHere("no kernels for latent layers"));
      case AttentionLayerSpec.BlockSparse sparse ->
          Option.some(notHere("no kernels for block-sparse layers"));
    };
  }

  private Option<InvalidReason> missing(AttentionLayerSpec.Dense layer, AttentionRequest request) {
    Option<InvalidReason> objection = objection(layer).orElse(() -> common(layer, request));
    return objection.isDefined()
        ? objection
        : host.device()
            .fold(
                why -> Option.some(notHere(why.getMessage())),
                device -> missingFromPack(device.pack(), layer, request));
  }

  private Option<InvalidReason> common(AttentionLayerSpec.Dense layer, AttentionRequest request) {
    if (request.deployment().batchInvariant()) {
      return Option.some(notHere("these kernels divide keys by the size of the batch"));
    }
    if (request.deployment().rswa() || request.deployment().alibiSqrt()) {
      return Option.some(notHere("no kernels for R-SWA or ALiBi of square roots"));
    }
    if (!layer.type().usesKvCache() || layer.headSizeV() != layer.headSize()) {
      return Option.some(
          notHere("no kernels without a KV cache, or with values of another head size"));
    }
    return Option.when(!(layer.scale() > 0), () -> notHere("no kernels for such a scale"));
  }

  private Option<InvalidReason> missingFromPack(
      KernelPack pack, AttentionLayerSpec.Dense layer, AttentionRequest request) {
    Seq<Integer> sizes = blockSizes(pack, request);
    int wanted = sizes.headOption().getOrElse(request.blockSize().getOrElse(16));
    if (CacheFormat.of(layer.kvCacheDtype().resolve(layer.dtype()), layer.dtype()).isEmpty()) {
      return Option.some(
          notHere("no kernel for a cache of " + layer.kvCacheDtype() + " and " + layer.dtype()));
    }
    return kernels(pack, layer, wanted)
        .missing(pack)
        .headOption()
        .map(refusal -> notHere(refusal.line()));
  }

  private LayerKernels kernels(KernelPack pack, AttentionLayerSpec.Dense layer, int blockSize) {
    return LayerKernels.of(
        pack,
        variant,
        layer,
        new KvCacheSpec(
            KvLayouts.NHD,
            layer.kvCacheDtype().resolve(layer.dtype()),
            blockSize,
            layer.numKvHeads(),
            layer.headSize(),
            layer.headSizeV(),
            KvScales.ONE));
  }

  /** Block sizes that the pack has decode and prefill kernels for. */
  private Seq<Integer> blockSizes(KernelPack pack, AttentionRequest request) {
    if (!(request.layer() instanceof AttentionLayerSpec.Dense layer)
        || CacheFormat.of(layer.kvCacheDtype().resolve(layer.dtype()), layer.dtype()).isEmpty()) {
      return Vector.empty();
    }
    return pack.manifest()
        .kernels()
        .keySet()
        .toVector()
        .flatMap(
            known ->
                known instanceof Specialisation.Attention attention
                    ? Vector.of(attention.blockSize())
                    : Vector.<Integer>empty())
        .distinct()
        .sorted()
        .filter(size -> kernels(pack, layer, size).missing(pack).isEmpty());
  }

  private InvalidReason notHere(String why) {
    return new InvalidReason(
        ReasonCode.NOT_ON_THIS_HOST,
        "kernels not on this host: " + why,
        name().value(),
        "a CUDA device and a kernel pack for it");
  }

  @Override
  public final GraphSupport graphSupport(LayerGroup group) {
    return TritonBuilder.GRAPHS;
  }

  @Override
  public final WorkspacePlan workspace(LayerGroup group, KvCacheSpec cache, BatchLimits limits) {
    return TritonBuilder.workspace(
        host.require(), variant, requireServed(group.spec(), cache), cache, limits);
  }

  @Override
  public final AttentionMetadataBuilder<TritonMetadata> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    return new TritonBuilder(host.require(), variant, requireServed(group.spec(), cache), cache);
  }

  @Override
  public final AttentionImpl<TritonMetadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    return TritonImpl.of(host.require(), variant, requireServed(layer, cache), parameters, cache);
  }

  /** The layer, if some kernel could compute it; whether the pack has it is asked later. */
  private AttentionLayerSpec.Dense requireServed(AttentionLayerSpec layer, KvCacheSpec cache) {
    AttentionLayerSpec.Dense dense = ServedLayer.requireDense(name(), layer);
    Option<InvalidReason> objection = objection(dense);
    if (objection.isDefined()) {
      throw unsupported(objection.get().text(), objection.get().wanted());
    }
    if (!dense.type().usesKvCache()) {
      throw unsupported(dense.type().label(), "a layer with a KV cache");
    }
    if (dense.headSizeV() != dense.headSize()) {
      throw unsupported("values of head size " + dense.headSizeV(), "that of the keys");
    }
    ServedLayer.requireScaleAndHeads(name(), dense, cache);
    return dense;
  }

  private BifocalException unsupported(String seen, String wanted) {
    return BifocalException.of(ErrorCode.UNSUPPORTED, "layer on " + name(), seen, wanted);
  }

  @Override
  public final String toString() {
    return name().value();
  }
}

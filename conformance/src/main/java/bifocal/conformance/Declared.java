package bifocal.conformance;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** What a backend declares, asked about whole layers. */
final class Declared {
  private static final Seq<Integer> HEAD_SIZES =
      Vector.of(64, 32, 40, 48, 72, 80, 96, 112, 120, 128, 160, 192, 256, 320, 384, 512, 576);
  private static final Seq<Integer> BLOCK_SIZES = Vector.of(16, 32, 64, 8, 48, 128, 256, 1);
  private static final Seq<DType> DTYPES = Vector.of(DType.FP32, DType.BF16, DType.FP16);

  private final AttentionBackend<?> backend;
  private final DeviceProfile profile;
  private final FeatureSet features;

  Declared(AttentionBackend<?> backend, DeviceProfile profile) {
    this.backend = backend;
    this.profile = profile;
    this.features = onDevice(backend, profile);
  }

  /** What the variant declares that serves a plain layer on the device. */
  private static FeatureSet onDevice(AttentionBackend<?> backend, DeviceProfile profile) {
    FeatureSet all = backend.capabilities().all();
    Seq<DType> dtypes = DTYPES.filter(all.dtypes()::contains);
    Seq<Integer> sizes = HEAD_SIZES.filter(all.headSizes()::accepts);
    if (dtypes.isEmpty() || sizes.isEmpty()) {
      return all;
    }
    Dense plain = Dense.decoder(4, 2, sizes.head(), dtypes.head(), AttentionMask.CAUSAL);
    return backend.capabilities(AttentionRequest.of(plain, profile)).all();
  }

  /** What is declared for a plain layer on the device. */
  FeatureSet features() {
    return features;
  }

  boolean has(Feature feature) {
    return features().has(feature);
  }

  /** Types of queries, fp32 first. */
  Seq<DType> dtypes() {
    return DTYPES.filter(dtype -> features().dtypes().contains(dtype));
  }

  /** Common head sizes it accepts, the usual one first. */
  Seq<Integer> headSizes() {
    return HEAD_SIZES.filter(size -> features().headSizes().accepts(size));
  }

  /** A head size it does not accept, if there is one. */
  Seq<Integer> refusedHeadSizes() {
    return Vector.of(33, 48, 80, 1024, 1).filter(size -> !features().headSizes().accepts(size));
  }

  /** Common block sizes it accepts, the usual one first. */
  Seq<Integer> blockSizes() {
    return BLOCK_SIZES.filter(size -> features().blockSizes().accepts(size));
  }

  /** Ways images may join the mask. */
  Seq<ImageMask> imageMasks() {
    return Vector.ofAll(features().imageMasks());
  }

  /** The plainest layer it runs: four heads in groups of two, causal. */
  Dense plain() {
    return plain(dtypes().head());
  }

  /** The plainest layer of a type. */
  Dense plain(DType dtype) {
    return Dense.decoder(4, 2, headSizes().head(), dtype, AttentionMask.CAUSAL);
  }

  /** The same of two heads alone, for very long sequences. */
  Dense small(DType dtype) {
    return Dense.decoder(2, 1, headSizes().head(), dtype, AttentionMask.CAUSAL);
  }

  /**
   * Whether every property of a layer is declared, their combination is not refused, and the
   * kernels are on this host.
   */
  boolean runs(Dense layer) {
    AttentionRequest request = AttentionRequest.of(layer, profile);
    return declares(backend.capabilities(request).all(), layer)
        && backend.checkCombination(request).isEmpty()
        && backend.missingOnThisHost(request).isEmpty();
  }

  private static boolean declares(FeatureSet features, Dense layer) {
    return features.dtypes().contains(layer.dtype())
        && declaresCache(features, layer)
        && features.headSizes().accepts(layer.headSize())
        && (layer.headSize() == layer.headSizeV()
            || (features.has(Feature.HEAD_SIZE_V)
                && features.headSizes().accepts(layer.headSizeV())))
        && features.types().contains(layer.type())
        && declaresMask(features, layer)
        && (layer.softcap().isEmpty() || features.has(Feature.SOFTCAP))
        && (!layer.alibi() || features.has(Feature.ALIBI))
        && (!layer.sinks() || features.has(Feature.SINK));
  }

  private static boolean declaresCache(FeatureSet features, Dense layer) {
    KvCacheDtype wanted = layer.kvCacheDtype().resolve(layer.dtype());
    return features.kvCacheDtypes().exists(dtype -> dtype.resolve(layer.dtype()) == wanted);
  }

  private static boolean declaresMask(FeatureSet features, Dense layer) {
    AttentionMask mask = layer.mask();
    boolean nonCausalDecoder = layer.type() == AttentionType.DECODER && !mask.causal();
    return (!nonCausalDecoder || features.has(Feature.NON_CAUSAL))
        && (mask.window().isEmpty() || features.has(Feature.SLIDING_WINDOW))
        && (mask.chunk().isEmpty() || features.has(Feature.CHUNKED_LOCAL))
        && (!mask.seesImages() || features.imageMasks().contains(mask.images()));
  }
}

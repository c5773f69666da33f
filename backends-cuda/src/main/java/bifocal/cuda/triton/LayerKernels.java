package bifocal.cuda.triton;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.pack.Specialisation;
import bifocal.cuda.pack.Specialisation.Attention;
import bifocal.cuda.pack.Specialisation.Engine;
import bifocal.cuda.pack.Specialisation.Phase;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;

/**
 * The specialisations that serve a layer over a cache.
 *
 * @param prefill for many queries of a request; the fastest engine that the pack has. A pack for
 *     decoding alone may have none
 * @param decode for few queries of a request
 * @param merge for divided decodes
 * @param write for the cache
 */
record LayerKernels(
    Attention prefill, Attention decode, Specialisation.Merge merge, Specialisation.Write write) {

  /**
   * What a layer needs.
   *
   * @throws BifocalException {@code UNSUPPORTED} for a cache that no kernel is ever compiled for
   */
  static LayerKernels of(
      KernelPack pack, TritonVariant variant, AttentionLayerSpec.Dense layer, KvCacheSpec cache) {
    CacheFormat format =
        CacheFormat.of(cache.dtype(), layer.dtype())
            .getOrElseThrow(
                () ->
                    BifocalException.of(
                        ErrorCode.UNSUPPORTED,
                        "KV cache of a layer of " + layer.dtype(),
                        cache.dtype(),
                        "the layer's own type, or a quantised one"));
    Attention decode =
        new Attention(
            Phase.DECODE,
            Engine.PORTABLE,
            variant.kernels(),
            layer.dtype(),
            format,
            layer.headSize(),
            layer.groupSize(),
            cache.blockSize(),
            layer.softcap().isDefined(),
            layer.alibi());
    Attention prefill = decode.in(Phase.PREFILL);
    Attention hopper = prefill.by(Engine.HOPPER);
    return new LayerKernels(
        pack.find(hopper).isValid() ? hopper : prefill,
        decode,
        new Specialisation.Merge(layer.dtype(), layer.headSize()),
        new Specialisation.Write(layer.dtype(), format, layer.headSize()));
  }

  /** The kernel for many queries, or why a pack has none. */
  Validation<PackRefusal, Attention> prefill(KernelPack pack) {
    return pack.find(prefill).map(found -> prefill);
  }

  /** The same into fp32, for a layer of a narrower type. */
  LayerKernels widened() {
    return new LayerKernels(
        prefill.by(Engine.PORTABLE).widened(),
        decode.widened(),
        new Specialisation.Merge(merge.dtype(), merge.headSize(), true),
        write);
  }

  /** What of it a pack lacks. */
  Seq<PackRefusal> missing(KernelPack pack) {
    return Vector.<Specialisation>of(prefill, decode, merge, write)
        .flatMap(
            wanted ->
                pack.find(wanted).isValid()
                    ? Vector.<PackRefusal>empty()
                    : Vector.of(pack.find(wanted).getError()));
  }
}

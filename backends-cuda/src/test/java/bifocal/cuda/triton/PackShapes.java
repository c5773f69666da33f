package bifocal.cuda.triton;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.Specialisation.Attention;
import bifocal.cuda.pack.Specialisation.Phase;
import bifocal.cuda.triton.TritonContract.Kind;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.Random;

/** Layers that the kernels of a pack can run: random in everything that is not compiled in. */
final class PackShapes {
  private PackShapes() {}

  /** Every shape of which a pack has all the kernels that a kind of backend needs. */
  static Seq<Attention> of(KernelPack pack, Kind kind) {
    return switch (kind) {
      case GENERAL -> of(pack, TritonVariant.GENERAL);
      case CAUSAL -> of(pack, TritonVariant.CAUSAL);
      case SPLIT, WHOLE, LOWERED ->
          of(pack, TritonVariant.GENERAL)
              .filter(shape -> complete(pack, shape, TritonVariant.CAUSAL));
    };
  }

  private static Seq<Attention> of(KernelPack pack, TritonVariant variant) {
    return pack.manifest()
        .kernels()
        .keySet()
        .toVector()
        .flatMap(
            known ->
                known instanceof Attention attention
                    ? Option.some(attention)
                    : Option.<Attention>none())
        .filter(shape -> shape.phase() == Phase.DECODE && !shape.wide())
        .filter(shape -> shape.variant() == variant.kernels())
        .filter(shape -> cacheDtype(shape.cache()).isDefined())
        .filter(shape -> complete(pack, shape, variant));
  }

  private static boolean complete(KernelPack pack, Attention shape, TritonVariant variant) {
    Dense layer = layer(shape, AttentionMask.CAUSAL, 1);
    return LayerKernels.of(
            pack,
            variant,
            layer,
            new KvCacheSpec(
                KvLayouts.NHD,
                layer.kvCacheDtype().resolve(layer.dtype()),
                shape.blockSize(),
                1,
                shape.headSize(),
                shape.headSize(),
                KvScales.ONE))
        .missing(pack)
        .isEmpty();
  }

  private static Option<KvCacheDtype> cacheDtype(CacheFormat format) {
    return switch (format.numbers()) {
      case SAME -> Option.some(KvCacheDtype.AUTO);
      case E4M3 ->
          Option.some(
              format.tokenScales() ? KvCacheDtype.FP8_PER_TOKEN_HEAD : KvCacheDtype.FP8_E4M3);
      case E5M2 -> format.tokenScales() ? Option.none() : Option.some(KvCacheDtype.FP8_E5M2);
      case INT8 -> Option.some(KvCacheDtype.INT8_PER_TOKEN_HEAD);
    };
  }

  /** A layer of a shape. */
  static Dense layer(Attention shape, AttentionMask mask, int kvHeads) {
    Dense plain =
        Dense.decoder(kvHeads * shape.group(), kvHeads, shape.headSize(), shape.dtype(), mask)
            .withKvCacheDtype(cacheDtype(shape.cache()).get())
            .withAlibi(shape.alibi());
    return shape.softcap() ? plain.withSoftcap(1.5) : plain;
  }

  /** A random layer of a shape. */
  static Dense random(Attention shape, Kind kind, Random random) {
    boolean images =
        switch (kind) {
          case GENERAL -> !shape.alibi() && random.nextInt(3) > 0;
          case CAUSAL -> false;
          case SPLIT, WHOLE, LOWERED -> true;
        };
    return layer(shape, mask(images, random), random.nextInt(1, 4))
        .withSinks(random.nextInt(3) == 0);
  }

  private static AttentionMask mask(boolean images, Random random) {
    Option<Integer> window =
        random.nextInt(3) == 0 ? Option.none() : Option.some(random.nextInt(1, 100));
    ImageMask mode =
        images ? ImageMask.values()[random.nextInt(1, ImageMask.values().length)] : ImageMask.NONE;
    return new AttentionMask(images || random.nextInt(4) > 0, window, mode, Option.none());
  }

  /** Scales that a cache of a shape may have. */
  static KvScales scales(Attention shape, int kvHeads, Random random) {
    if (!shape.cache().quantised() || shape.cache().tokenScales()) {
      return KvScales.ONE;
    }
    return random.nextBoolean()
        ? new KvScales.PerTensor(0.037f, 0.21f)
        : new KvScales.PerHead(several(kvHeads, random), several(kvHeads, random));
  }

  private static float[] several(int count, Random random) {
    float[] scales = new float[count];
    for (int i = 0; i < count; i++) {
      scales[i] = 0.02f + random.nextFloat() / 4;
    }
    return scales;
  }

  /** The kinds of backends. */
  static Seq<Kind> kinds() {
    return Vector.of(Kind.values());
  }
}

package bifocal.conformance;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;
import java.util.Random;

/** Small layers that a seed decides: likely ones come often, odd ones too. */
final class RandomLayers {
  private final Random random;

  RandomLayers(long seed) {
    this.random = new Random(seed);
  }

  /**
   * A layer and what else is asked for.
   *
   * @param page tokens per block of the block table, absent when it is left open
   */
  record Drawn(Dense layer, Option<Integer> page) {
    @Override
    public String toString() {
      return Checks.name(layer) + page.map(size -> ", blocks of " + size).getOrElse("");
    }
  }

  Drawn next() {
    AttentionType type = one(6) ? pick(AttentionType.values()) : AttentionType.DECODER;
    Dense layer =
        Dense.decoder(
                4,
                pick(1, 2, 4),
                pick(32, 64, 64, 64, 80, 96, 128, 128, 16, 33, 48),
                pick(DType.FP32, DType.BF16, DType.FP16),
                mask(type))
            .withType(type)
            .withSinks(one(6))
            .withAlibi(one(6));
    if (type.usesKvCache() && one(2)) {
      layer = layer.withKvCacheDtype(pick(KvCacheDtype.values()));
    }
    if (one(8)) {
      layer = layer.withHeadSizeV(pick(32, 64, 33, 128));
    }
    if (one(6)) {
      layer = layer.withSoftcap(30);
    }
    return new Drawn(layer, type.usesKvCache() && one(2) ? Option.some(page()) : Option.none());
  }

  private int page() {
    return pick(8, 16, 24, 32, 48, 64, 128);
  }

  private AttentionMask mask(AttentionType type) {
    AttentionMask mask =
        type != AttentionType.DECODER || one(6)
            ? AttentionMask.BIDIRECTIONAL
            : AttentionMask.CAUSAL;
    if (one(3)) {
      mask = mask.withWindow(pick(1, 5, 16, 40));
    }
    return mask.causal() && one(3) ? mask.withImages(pick(ImageMask.values())) : mask;
  }

  private boolean one(int of) {
    return random.nextInt(of) == 0;
  }

  @SafeVarargs
  private <T> T pick(T... values) {
    return values[random.nextInt(values.length)];
  }
}

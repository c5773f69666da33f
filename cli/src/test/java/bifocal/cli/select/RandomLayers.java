package bifocal.cli.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.Deployment;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.DeviceProfile.CpuIsa;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.select.AttentionConfig;
import bifocal.core.select.ModelTraits;
import bifocal.core.select.Role;
import bifocal.core.select.SelectionRequest;
import bifocal.core.tensor.DType;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Set;
import io.vavr.control.Option;
import java.util.SplittableRandom;

/** Layers, devices and deployments, drawn by chance; likely values come often, odd ones too. */
final class RandomLayers {
  private final SplittableRandom random;
  private final Platform platform;

  RandomLayers(Platform platform, long seed) {
    this.platform = platform;
    this.random = new SplittableRandom(seed);
  }

  SelectionRequest next() {
    AttentionLayerSpec layer = one(4) ? latent() : dense();
    return new SelectionRequest(
        new AttentionRequest(
            layer,
            device(),
            Option.when(one(3), () -> pick(8, 16, 24, 32, 48, 64, 96, 128, 256, 1024)),
            deployment(layer)),
        config(),
        ModelTraits.UNKNOWN,
        Role.TARGET,
        one(4));
  }

  private AttentionLayerSpec.Dense dense() {
    int kvHeads = pick(1, 2, 4, 8, 16);
    int headSize = pick(16, 32, 64, 64, 80, 96, 112, 128, 128, 128, 192, 256, 256, 512, 33, 576);
    AttentionType type = one(5) ? AttentionType.values()[random.nextInt(4)] : AttentionType.DECODER;
    AttentionLayerSpec.Dense layer =
        AttentionLayerSpec.Dense.decoder(
                kvHeads * pick(1, 2, 4, 8), kvHeads, headSize, dtype(), mask(type))
            .withType(type)
            .withKvCacheDtype(kvCacheDtype())
            .withSinks(one(6))
            .withAlibi(one(10));
    if (one(10)) {
      layer = layer.withHeadSizeV(pick(64, 128, 256));
    }
    return one(8) ? layer.withSoftcap(50) : layer;
  }

  private AttentionLayerSpec latent() {
    AttentionLayerSpec.Mla mla =
        new AttentionLayerSpec.Mla(
            pick(8, 16, 24, 64, 128),
            pick(256, 448, 512, 512),
            pick(64, 128, 128, 192, 256),
            pick(0, 64),
            pick(128, 256),
            dtype(),
            kvCacheDtype(),
            one(6) ? AttentionMask.BIDIRECTIONAL : AttentionMask.CAUSAL,
            0.1,
            one(8));
    return one(2)
        ? mla
        : new AttentionLayerSpec.SparseMla(mla, Option.when(!one(8), () -> pick(512, 2048)));
  }

  private AttentionMask mask(AttentionType type) {
    AttentionMask mask =
        type != AttentionType.DECODER || one(8)
            ? AttentionMask.BIDIRECTIONAL
            : AttentionMask.CAUSAL;
    if (one(3)) {
      mask = mask.withWindow(pick(64, 128, 1024));
    }
    return mask.causal() && one(3)
        ? mask.withImages(ImageMask.values()[1 + random.nextInt(3)])
        : mask;
  }

  private DType dtype() {
    return pick(DType.BF16, DType.BF16, DType.FP16, DType.FP32);
  }

  private KvCacheDtype kvCacheDtype() {
    return one(2)
        ? KvCacheDtype.AUTO
        : KvCacheDtype.values()[random.nextInt(KvCacheDtype.values().length)];
  }

  private Deployment deployment(AttentionLayerSpec layer) {
    return new Deployment(
        one(4),
        one(8) ? 2 : 1,
        one(20) ? 2 : 1,
        one(10),
        one(10),
        one(12),
        one(15),
        one(12),
        one(20));
  }

  private AttentionConfig config() {
    AttentionConfig.Builder builder = AttentionConfig.builder();
    if (one(6)) {
      builder.flashAttnVersion(2 + random.nextInt(3));
    }
    if (one(6)) {
      builder.useTrtllmAttention(one(2));
    }
    if (one(8)) {
      builder.tritonFlashAttnAllowsFa3(true);
    }
    if (one(2)) {
      builder.rocmUseAiter(true).rocmUseAiterUnifiedAttention(one(2));
    }
    return builder.build();
  }

  private DeviceProfile device() {
    Set<String> packages =
        one(5)
            ? LinkedHashSet.of(
                pick(
                    "no-fa3",
                    "no-fa4",
                    "no-flashinfer-cubins",
                    "no-aiter",
                    "no-flash-attn",
                    "no-flashinfer",
                    "no-flashinfer-sparse-mla",
                    "no-flashmla",
                    "no-tokenspeed-mla"))
            : LinkedHashSet.empty();
    return switch (platform) {
      case CUDA ->
          new DeviceProfile.Cuda(
              pick(
                  new ComputeCapability(7, 5),
                  new ComputeCapability(8, 0),
                  new ComputeCapability(8, 9),
                  new ComputeCapability(9, 0),
                  new ComputeCapability(10, 0),
                  new ComputeCapability(10, 3),
                  new ComputeCapability(11, 0),
                  new ComputeCapability(12, 0)),
              packages,
              true);
      case ROCM ->
          new DeviceProfile.Rocm(
              pick("gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"), packages, true);
      case CPU -> new DeviceProfile.Cpu(pick(CpuIsa.values()), packages, true);
      case XPU -> new DeviceProfile.Xpu("xpu", packages, true);
    };
  }

  boolean one(int of) {
    return random.nextInt(of) == 0;
  }

  @SafeVarargs
  final <T> T pick(T... values) {
    return values[random.nextInt(values.length)];
  }
}

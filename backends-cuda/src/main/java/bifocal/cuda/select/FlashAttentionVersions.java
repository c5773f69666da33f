package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.KernelSettings.FlashAttentionVersion;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * Which version of FlashAttention serves a layer. The default of the device, or the wanted version,
 * passes through rules in a fixed order; every change is noted.
 */
final class FlashAttentionVersions {
  private static final int HD256 = 256;
  private static final int HD256_PAGE = 128;

  private final AttentionRequest request;
  private final AttentionLayerSpec layer;
  private final int major;
  private final Option<Integer> kvBlockSize;
  private int version;
  private Seq<String> notes = Vector.empty();

  /**
   * The outcome.
   *
   * @param version 2, 3 or 4; 0 when none is supported
   * @param started the version before the rules: the wanted one or the device's default
   * @param notes every change and its cause
   */
  record Resolution(int version, int started, Seq<String> notes) {
    boolean changed() {
      return version != started;
    }
  }

  private FlashAttentionVersions(AttentionRequest request, Option<Integer> kvBlockSize) {
    this.request = request;
    this.layer = request.layer();
    this.major = Sm.major(request.device());
    this.kvBlockSize = kvBlockSize;
    this.version = started(request);
  }

  /** Resolves the version of a layer, before a block size is settled. */
  static Resolution of(AttentionRequest request) {
    return of(request, Option.none());
  }

  /** Resolves the version of a layer over a cache whose block size is known. */
  static Resolution of(AttentionRequest request, Option<Integer> kvBlockSize) {
    return new FlashAttentionVersions(request, kvBlockSize).resolve();
  }

  /** The version before the rules of a layer: what a whole process is asked for. */
  static int started(AttentionRequest request) {
    return request
        .deployment()
        .kernels()
        .flashAttention()
        .map(FlashAttentionVersion::number)
        .getOrElse(() -> byDefault(request.device()));
  }

  /** Whether version 4 runs on a device. */
  static boolean hasVersion4(DeviceProfile device) {
    int major = Sm.major(device);
    return (major == 9 || major == 10) && KernelPackages.FLASH_ATTENTION_4.on(device);
  }

  private static boolean hasVersion3(DeviceProfile device) {
    return Sm.major(device) == 9 && KernelPackages.FLASH_ATTENTION_3.on(device);
  }

  private static int byDefault(DeviceProfile device) {
    if (hasVersion3(device)) {
      return 3;
    }
    return Sm.major(device) == 10 && hasVersion4(device) ? 4 : 2;
  }

  private Resolution resolve() {
    int started = version;
    if (request.device().platform() == Platform.CUDA) {
      blackwellHasNoVersion3();
      alibi();
      hopperUpgrades();
      batchInvariance();
      blackwellHead256();
      blackwellWideHeads();
    }
    unsupported();
    return new Resolution(version, started, notes);
  }

  private void blackwellHasNoVersion3() {
    if (major >= 10 && version == 3) {
      change(
          hasVersion4(request.device()) ? 4 : 2,
          "Cannot use FA version 3 on Blackwell platform, defaulting to FA version 4 if supported,"
              + " otherwise FA2.");
    }
  }

  private void alibi() {
    if (layer.alibi() && version >= 3) {
      change(2, "Cannot use FA version " + version + " with ALiBi, defaulting to FA version 2.");
    }
  }

  private void hopperUpgrades() {
    if (version != 3 || major != 9 || !hasVersion4(request.device())) {
      return;
    }
    if (layer.headSize() > HD256) {
      upgrade("FA3 does not support head_size=" + layer.headSize() + " on SM90");
    } else if (layer.sinks() && layer.headSize() != layer.headSizeV()) {
      upgrade("Diff-KV with sinks");
    } else if (request.deployment().kernels().perSequenceCausal()) {
      upgrade("Per-sequence causal (dynamic_causal) requires FA4");
    }
  }

  private void upgrade(String why) {
    change(4, why + ": upgrading FlashAttention 3 -> 4");
  }

  private void batchInvariance() {
    if (request.deployment().batchInvariant() && version == 4) {
      change(2, "Cannot use FA version 4 with batch invariance, defaulting to FA version 2.");
    }
  }

  private void blackwellHead256() {
    if (version != 4 || !servedByHead256Kernel()) {
      return;
    }
    head256Blocker()
        .forEach(
            blocker ->
                change(
                    2,
                    "FA4's Blackwell head_size=256 kernel does not support "
                        + blocker
                        + ", defaulting to FA version 2."));
  }

  private boolean servedByHead256Kernel() {
    return (major == 10 || major == 11) && layer.headSize() == HD256 && layer.headSizeV() == HD256;
  }

  private Option<String> head256Blocker() {
    Deployment deployment = request.deployment();
    KvCacheDtype kv = layer.kvCacheDtype();
    if (layer.sinks()) {
      return Option.some("attention sinks");
    }
    if (layer.softcap().isDefined()) {
      return Option.some("logits soft capping");
    }
    if (quantized(kv)) {
      return Option.some("quantized KV cache dtype " + kv);
    }
    if (kvBlockSize.exists(size -> size % HD256_PAGE != 0)) {
      return Option.some("a KV cache block size of " + kvBlockSize.get());
    }
    if (request.mmPrefix()) {
      return Option.some("mm_prefix bidirectional attention");
    }
    if (deployment.rswa()) {
      return Option.some("R-SWA");
    }
    if (deployment.decodeContextParallel() > 1) {
      return Option.some("decode context parallelism");
    }
    boolean windowedEncoder =
        layer.type() != AttentionType.DECODER && layer.mask().window().isDefined();
    return Option.when(windowedEncoder, "windowed encoder attention");
  }

  /** Whether a cache counts as quantized; TurboQuant's types do not. */
  static boolean quantized(KvCacheDtype kv) {
    String name = kv.label();
    return name.startsWith("fp8") || name.endsWith("per_token_head") || name.startsWith("nvfp4");
  }

  /** Whether the kernel for heads of 256, which wants pages of 128, is what a version means. */
  static boolean isHead256Kernel(AttentionRequest request, int version) {
    return version == 4
        && new FlashAttentionVersions(request, Option.none()).servedByHead256Kernel();
  }

  private void blackwellWideHeads() {
    boolean special =
        (layer.headSize() == HD256 && layer.headSizeV() == HD256)
            || (layer.headSize() == 192 && layer.headSizeV() == 128);
    if (version == 4 && major >= 10 && layer.headSize() > 128 && !special) {
      change(
          2,
          "FA4 on Blackwell does not support head_size="
              + layer.headSize()
              + " due to TMEM capacity limits, defaulting to FA version 2.");
    }
  }

  private void unsupported() {
    boolean supported =
        switch (version) {
          case 2 -> request.device().platform() == Platform.XPU || major >= 8;
          case 3 -> hasVersion3(request.device());
          default -> hasVersion4(request.device());
        };
    if (!supported) {
      change(
          0,
          "FA version "
              + version
              + " is not supported on "
              + request.device().label()
              + (version == 2 ? "" : ", or not installed"));
    }
  }

  private void change(int to, String why) {
    version = to;
    notes = notes.append(why);
  }
}

package bifocal.cpu.attention;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.backend.ResolvesVariants;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionMask;
import bifocal.core.select.FeatureRow;
import bifocal.core.select.FeatureTable;
import bifocal.core.select.Tabulated;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * {@code FLEX_ATTENTION}: every declared mask, as an interval of keys per query. The reference
 * knows it on GPUs; here it runs on the CPU.
 */
public final class FlexAttentionBackend extends CpuBackend implements Tabulated, ResolvesVariants {
  /** Its name. */
  public static final BackendName NAME = BackendName.of("FLEX_ATTENTION");

  /** A backend that computes with some kernels and threads. */
  public FlexAttentionBackend(CpuRuntime runtime) {
    super(runtime, true);
  }

  @Override
  public BackendName name() {
    return NAME;
  }

  @Override
  public Capabilities capabilities() {
    return CpuFeatures.FLEX_ATTENTION;
  }

  @Override
  public Capabilities capabilities(AttentionRequest request) {
    return switch (request.device()) {
      case DeviceProfile.Cpu cpu -> CpuFeatures.FLEX_ON_CPU;
      case DeviceProfile.Cuda cuda -> CpuFeatures.FLEX_ELSEWHERE;
      case DeviceProfile.Rocm rocm -> CpuFeatures.FLEX_ELSEWHERE;
      case DeviceProfile.Xpu xpu -> CpuFeatures.FLEX_ELSEWHERE;
    };
  }

  @Override
  public Option<InvalidReason> checkCombination(AttentionRequest request) {
    AttentionMask mask = request.layer().mask();
    return mask.seesImages() && mask.chunk().isDefined()
        ? Option.some(
            new InvalidReason(
                ReasonCode.COMBINATION,
                "chunked-local attention with an image mask is not defined",
                mask.images().label() + " with chunks of " + mask.chunk().get(),
                "one of the two"))
        : Option.none();
  }

  @Override
  public Option<InvalidReason> missingOnThisHost(AttentionRequest request) {
    return switch (request.device()) {
      case DeviceProfile.Cpu cpu -> Option.none();
      case DeviceProfile.Cuda cuda -> notHere("CUDA");
      case DeviceProfile.Rocm rocm -> notHere("ROCm");
      case DeviceProfile.Xpu xpu -> notHere("XPU");
    };
  }

  private static Option<InvalidReason> notHere(String platform) {
    return Option.some(
        new InvalidReason(
            ReasonCode.NOT_ON_THIS_HOST,
            "FLEX_ATTENTION has no " + platform + " kernels here",
            platform,
            "the CPU"));
  }

  @Override
  public Seq<FeatureRow> rows() {
    return Vector.of(
        FeatureRow.of(FeatureTable.STANDARD, NAME, "", CpuFeatures.FLEX_ATTENTION.reference()));
  }

  @Override
  public ResolvedVariant variant(AttentionRequest request) {
    return ResolvedVariant.of(
        "",
        capabilities(request),
        request.device().platform() == Platform.CPU ? GraphSupport.NEVER : GraphSupport.ALWAYS);
  }
}

package bifocal.cli.select;

import bifocal.cli.command.CliFailure;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.DeviceProfile.CpuIsa;
import bifocal.core.device.Platform;
import bifocal.core.error.ErrorCode;
import bifocal.core.select.DeviceDescription;
import bifocal.core.select.PlatformPolicy;
import bifocal.core.select.Selector;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The options that say for which device. */
final class DeviceOptions {
  private static final Pattern CAPABILITY = Pattern.compile("(\\d{1,2})\\.(\\d{1,2})");

  /** Where kernels are looked for, first of all on devices that compute fastest. */
  private static final Seq<Platform> PROBED =
      Vector.of(Platform.CUDA, Platform.ROCM, Platform.XPU, Platform.CPU);

  @picocli.CommandLine.Option(
      names = "--platform",
      paramLabel = "cuda|rocm|cpu|xpu",
      description = "Simulate this platform; without it, the host is probed.")
  private String platform = "";

  @picocli.CommandLine.Option(
      names = "--capability",
      paramLabel = "N.N",
      description = "Compute capability of the simulated NVIDIA device, for instance 9.0.")
  private String capability = "";

  @picocli.CommandLine.Option(
      names = "--arch",
      paramLabel = "NAME",
      description = "Architecture of the simulated AMD device, for instance gfx942.")
  private String arch = "";

  @picocli.CommandLine.Option(
      names = "--cpu-isa",
      paramLabel = "avx2|avx512f|avx512bf16|amx",
      description = "Instruction set of the simulated processor.")
  private String isa = "";

  @picocli.CommandLine.Option(
      names = "--assume",
      paramLabel = "PACKAGE",
      description = "Assume that a kernel package is there; no-PACKAGE, that it is not.")
  private List<String> packages = List.of();

  /** The simulated device, or the one that the host has. */
  DeviceProfile device(Selector selector) {
    Option<Platform> simulated = simulated();
    return simulated.isDefined()
        ? selector.policy(simulated.get()).simulate(description())
        : probed(selector);
  }

  /** Whether a device is described. */
  boolean named() {
    return simulated().isDefined();
  }

  private Option<Platform> simulated() {
    Option<Platform> implied =
        !capability.isEmpty()
            ? Option.some(Platform.CUDA)
            : !arch.isEmpty()
                ? Option.some(Platform.ROCM)
                : Option.when(!isa.isEmpty(), Platform.CPU);
    return platform.isEmpty()
        ? implied
        : Option.some(Choice.of("--platform", platform, Platform.values(), Platform::label));
  }

  private DeviceDescription description() {
    return new DeviceDescription(
        Option.when(!capability.isEmpty(), this::parsedCapability),
        Option.when(!arch.isEmpty(), arch),
        Option.when(
            !isa.isEmpty(), () -> Choice.of("--cpu-isa", isa, CpuIsa.values(), CpuIsa::label)),
        LinkedHashSet.ofAll(packages));
  }

  private ComputeCapability parsedCapability() {
    Matcher matcher = CAPABILITY.matcher(capability);
    if (!matcher.matches()) {
      throw CliFailure.of(
          ErrorCode.INVALID_OPTION,
          "--capability: '" + capability + "', wanted major.minor, for instance 9.0");
    }
    return new ComputeCapability(
        Integer.parseInt(matcher.group(1)), Integer.parseInt(matcher.group(2)));
  }

  private static DeviceProfile probed(Selector selector) {
    Seq<PlatformPolicy> policies = selector.policies();
    return PROBED
        .flatMap(wanted -> policies.find(policy -> policy.platform() == wanted))
        .flatMap(PlatformPolicy::probe)
        .headOption()
        .getOrElseThrow(
            () ->
                CliFailure.of(
                    ErrorCode.INVALID_OPTION,
                    "no device of an installed platform is on this host; say --platform to"
                        + " simulate one"));
  }
}

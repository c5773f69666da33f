package bifocal.cli.select;

import bifocal.cli.command.CliFailure;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.DeviceProfile.CpuIsa;
import bifocal.core.device.Platform;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.core.select.DeviceDescription;
import bifocal.core.select.PlatformPolicy;
import bifocal.core.select.Selector;
import io.vavr.Tuple;
import io.vavr.Tuple2;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** The options that say for which device. */
final class DeviceOptions {
  private static final Pattern CAPABILITY = Pattern.compile("(\\d{1,2})\\.(\\d{1,2})");
  private static final Pattern ARCHITECTURE = Pattern.compile("gfx[0-9a-f]{3,4}");

  /** Where kernels are looked for, first of all on devices that compute fastest. */
  private static final Seq<Platform> PROBED =
      Vector.of(Platform.CUDA, Platform.ROCM, Platform.XPU, Platform.CPU);

  @picocli.CommandLine.Option(
      names = "--platform",
      paramLabel = "cuda|rocm|cpu|xpu",
      description = "Simulate this platform; without it, the host is probed.")
  private @Nullable String platform;

  @picocli.CommandLine.Option(
      names = "--capability",
      paramLabel = "N.N",
      description = "Compute capability of the simulated NVIDIA device, for instance 9.0.")
  private @Nullable String capability;

  @picocli.CommandLine.Option(
      names = "--arch",
      paramLabel = "NAME",
      description = "Architecture of the simulated AMD device, for instance gfx942.")
  private @Nullable String arch;

  @picocli.CommandLine.Option(
      names = "--cpu-isa",
      paramLabel = "avx2|avx512f|avx512bf16|amx",
      description = "Instruction set of the simulated processor.")
  private @Nullable String isa;

  @picocli.CommandLine.Option(
      names = "--assume",
      paramLabel = "PACKAGE",
      description = "Assume that a kernel package is there; no-PACKAGE, that it is not.")
  private List<String> packages = List.of();

  /** The simulated device, or the one that the host has. */
  DeviceProfile device(Selector selector) {
    Option<Platform> simulated = simulated();
    if (simulated.isEmpty()) {
      requireNothingElse();
      return probed(selector);
    }
    PlatformPolicy policy = selector.policy(simulated.get());
    packages.forEach(name -> requireKnown(policy, name));
    return policy.simulate(description());
  }

  /** An option that belongs to another platform than the one that is named is not passed over. */
  private Option<Platform> simulated() {
    Option<Platform> named =
        Given.of(platform)
            .map(name -> Choice.of("--platform", name, Platform.values(), Platform::label));
    Seq<Tuple2<String, Platform>> implied =
        Vector.of(
                Given.of(capability).map(given -> Tuple.of("--capability", Platform.CUDA)),
                Given.of(arch).map(given -> Tuple.of("--arch", Platform.ROCM)),
                Given.of(isa).map(given -> Tuple.of("--cpu-isa", Platform.CPU)))
            .flatMap(option -> option);
    Option<Platform> platforms = named.orElse(implied.headOption().map(Tuple2::_2));
    implied
        .find(option -> platforms.exists(chosen -> chosen != option._2()))
        .forEach(
            stray -> {
              throw CliFailure.of(
                  ErrorCode.INVALID_OPTION,
                  stray._1()
                      + " is for platform "
                      + stray._2().label()
                      + ", not for "
                      + platforms.get().label());
            });
    return platforms;
  }

  private void requireNothingElse() {
    if (!packages.isEmpty()) {
      throw CliFailure.of(
          ErrorCode.INVALID_OPTION,
          "--assume is for simulated devices; say --platform, or leave it out on this host");
    }
  }

  private void requireKnown(PlatformPolicy policy, String name) {
    String bare = name.startsWith("no-") ? name.substring(3) : name;
    if (!policy.packages().contains(bare)) {
      throw CliFailure.of(
          ErrorCode.INVALID_OPTION,
          "--assume: unknown package '"
              + name
              + "' of platform "
              + policy.platform().label()
              + (policy.packages().isEmpty()
                  ? ", which has none"
                  : "; " + NearestName.adviceAndAll(bare, policy.packages())));
    }
    if (packages.contains(bare) && packages.contains("no-" + bare)) {
      throw CliFailure.of(
          ErrorCode.INVALID_OPTION, "--assume: both '" + bare + "' and 'no-" + bare + "'");
    }
  }

  private DeviceDescription description() {
    return new DeviceDescription(
        Given.of(capability).map(DeviceOptions::parsedCapability),
        Given.of(arch).map(DeviceOptions::parsedArchitecture),
        Given.of(isa).map(name -> Choice.of("--cpu-isa", name, CpuIsa.values(), CpuIsa::label)),
        LinkedHashSet.ofAll(packages));
  }

  private static String parsedArchitecture(String arch) {
    String name = arch.strip().toLowerCase(Locale.ROOT);
    if (!ARCHITECTURE.matcher(name).matches()) {
      throw CliFailure.of(
          ErrorCode.INVALID_OPTION, "--arch: '" + arch + "', wanted a name such as gfx942");
    }
    return name;
  }

  private static ComputeCapability parsedCapability(String capability) {
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

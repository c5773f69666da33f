package bifocal.core.backend;

import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;

/**
 * Devices a backend runs on.
 *
 * @param platforms kinds of hardware
 * @param capabilities ranges of compute capability on CUDA; none means every one
 */
public record DeviceSupport(Set<Platform> platforms, Seq<Range> capabilities) {

  /** Compute capabilities from {@code least} to {@code most}, both included. */
  public record Range(ComputeCapability least, ComputeCapability most) {
    boolean accepts(ComputeCapability capability) {
      return least.compareTo(capability) <= 0 && capability.compareTo(most) <= 0;
    }

    /** Every minor version from one major version to another. */
    public static Range majors(int from, int to) {
      return new Range(
          new ComputeCapability(from, 0), new ComputeCapability(to, Integer.MAX_VALUE));
    }

    /** From a capability on. */
    public static Range from(int major, int minor) {
      return new Range(
          new ComputeCapability(major, minor),
          new ComputeCapability(Integer.MAX_VALUE, Integer.MAX_VALUE));
    }

    /** Exactly one capability. */
    public static Range exactly(int major, int minor) {
      ComputeCapability capability = new ComputeCapability(major, minor);
      return new Range(capability, capability);
    }

    @Override
    public String toString() {
      if (least.equals(most)) {
        return least.toString();
      }
      if (most.major() == Integer.MAX_VALUE) {
        return ">=" + least;
      }
      String from = least.minor() == 0 ? least.major() + ".x" : least.toString();
      String to = most.minor() == Integer.MAX_VALUE ? most.major() + ".x" : most.toString();
      return from.equals(to) ? from : from + "-" + to;
    }
  }

  /** Every device of some platforms. */
  public static DeviceSupport on(Platform... platforms) {
    return new DeviceSupport(HashSet.of(platforms), Vector.empty());
  }

  /** CUDA devices in one of these ranges. */
  public static DeviceSupport cuda(Range... ranges) {
    return new DeviceSupport(HashSet.of(Platform.CUDA), Vector.of(ranges));
  }

  /** Whether a device is supported. */
  public boolean accepts(DeviceProfile device) {
    if (!platforms.contains(device.platform())) {
      return false;
    }
    return switch (device) {
      case DeviceProfile.Cuda cuda ->
          capabilities.isEmpty() || capabilities.exists(r -> r.accepts(cuda.capability()));
      case DeviceProfile.Cpu cpu -> true;
      case DeviceProfile.Rocm rocm -> true;
      case DeviceProfile.Xpu xpu -> true;
    };
  }

  @Override
  public String toString() {
    return platforms.isEmpty()
        ? "none"
        : platforms.toVector().sorted().map(this::labelOf).mkString(", ");
  }

  private String labelOf(Platform platform) {
    return platform == Platform.CUDA && capabilities.nonEmpty()
        ? platform.label() + capabilities.mkString(" ", ", ", "")
        : platform.label();
  }
}

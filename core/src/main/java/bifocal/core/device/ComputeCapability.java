package bifocal.core.device;

/** Compute capability of a CUDA device, for instance 9.0. */
public record ComputeCapability(int major, int minor) implements Comparable<ComputeCapability> {
  @Override
  public int compareTo(ComputeCapability other) {
    return major != other.major
        ? Integer.compare(major, other.major)
        : Integer.compare(minor, other.minor);
  }

  @Override
  public String toString() {
    return major + "." + minor;
  }
}

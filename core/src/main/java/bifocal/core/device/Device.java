package bifocal.core.device;

/**
 * One device of a platform.
 *
 * @param platform kind of hardware
 * @param ordinal index among the devices of that kind, from 0
 */
public record Device(Platform platform, int ordinal) {
  /** The host processor and its memory. */
  public static final Device HOST = new Device(Platform.CPU, 0);

  /** Whether the host can read memory of this device through a pointer. */
  public boolean hostReadable() {
    return platform == Platform.CPU;
  }

  @Override
  public String toString() {
    return platform.label() + ":" + ordinal;
  }
}

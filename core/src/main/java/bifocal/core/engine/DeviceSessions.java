package bifocal.core.engine;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.ServiceLoader;

/**
 * Opens sessions on devices of one platform. A platform whose memory the host cannot read brings
 * one, found by {@link ServiceLoader}.
 */
public interface DeviceSessions {
  /** The platform. */
  Platform platform();

  /**
   * Opens a session on the platform's first device, on the calling thread.
   *
   * @throws BifocalException {@code NATIVE_MISSING} that says in one line what is missing
   */
  DeviceSession open(AttentionObserver observer);

  /**
   * The sessions of a platform.
   *
   * @throws BifocalException {@code NATIVE_MISSING} when no platform on the class path brings them
   */
  static DeviceSessions of(Platform platform) {
    for (DeviceSessions sessions : ServiceLoader.load(DeviceSessions.class)) {
      if (sessions.platform() == platform) {
        return sessions;
      }
    }
    throw BifocalException.of(
            ErrorCode.NATIVE_MISSING,
            "platform " + platform.label() + " has no kernels in this build and cannot run")
        .withRemedy("simulate it with select, explain and route, or run on another platform");
  }
}

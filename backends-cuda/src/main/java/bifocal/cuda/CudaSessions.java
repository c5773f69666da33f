package bifocal.cuda;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.device.Platform;
import bifocal.core.engine.DeviceSession;
import bifocal.core.engine.DeviceSessions;
import bifocal.cuda.triton.TritonHost;

/** Sessions on this host's first CUDA device, whose kernels come from its packs. */
public final class CudaSessions implements DeviceSessions {
  private final TritonHost host;

  /** Sessions with the device and kernel packs of this host. */
  public CudaSessions() {
    this(TritonHost.ofThisJvm());
  }

  /** Sessions with the kernels of a host. */
  public CudaSessions(TritonHost host) {
    this.host = host;
  }

  @Override
  public Platform platform() {
    return Platform.CUDA;
  }

  @Override
  public DeviceSession open(AttentionObserver observer) {
    return host.device()
        .fold(
            why -> {
              throw why;
            },
            device -> new CudaSession(device.context(), observer));
  }
}

package bifocal.cuda.driver;

import bifocal.tvm.DeviceStream;
import org.jspecify.annotations.Nullable;

/**
 * The two streams of a layer's steps, as TVM-FFI takes them: the host's and the one beside it. They
 * are described anew only when others come.
 */
public final class StepStreams {
  private @Nullable DeviceStream last;
  private @Nullable DeviceStream other;

  /** A stream. */
  public DeviceStream of(CudaStream stream) {
    DeviceStream known = last;
    if (known != null && known.handle() == stream.handle()) {
      return known;
    }
    DeviceStream found = other;
    if (found == null || found.handle() != stream.handle()) {
      found = DeviceStream.of(stream.context().place(), stream.handle());
    }
    other = known;
    last = found;
    return found;
  }
}

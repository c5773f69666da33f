package bifocal.core.engine;

import bifocal.core.Incubating;
import bifocal.core.backend.LaunchContext;

/** How a device records what is launched on its stream. A platform implements it. */
@Incubating
public interface GraphCapture {
  /**
   * Records launches instead of running them.
   *
   * @param launches launches on the context's stream, and nothing else
   * @throws bifocal.core.error.BifocalException {@code NATIVE_FAILED} or {@code NOT_CAPTURABLE};
   *     the stream then records no more
   */
  CapturedGraph capture(LaunchContext launch, Runnable launches);

  /** Recorded launches, with the addresses they were recorded with. */
  interface CapturedGraph extends AutoCloseable {
    /** Launches everything again, on the context's stream. */
    void replay(LaunchContext launch);

    @Override
    void close();
  }
}

package bifocal.cuda.driver;

import bifocal.core.backend.LaunchContext;
import bifocal.core.engine.GraphCapture;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Records a stream's launches as a CUDA graph. Kernels were loaded when they were looked up, so
 * that nothing is loaded inside a capture.
 */
public final class CudaGraphCapture implements GraphCapture {
  private static final int THREAD_LOCAL = 1;

  @Override
  public CapturedGraph capture(LaunchContext launch, Runnable launches) {
    CudaStream stream = CudaLaunchContext.of(launch).queue();
    Recording recording = record(stream, launches);
    Executable executable;
    try {
      executable = instantiate(stream, recording.handle);
    } catch (RuntimeException failure) {
      CudaContext.closeSuppressed(recording, failure);
      throw failure;
    }
    try {
      recording.close();
      executable.upload();
      return executable;
    } catch (RuntimeException failure) {
      CudaContext.closeSuppressed(executable, failure);
      throw failure;
    }
  }

  private static Recording record(CudaStream stream, Runnable launches) {
    stream.requireOpen("cuStreamBeginCapture");
    CudaContext context = stream.context();
    context.check(
        "cuStreamBeginCapture", context.driver().streamBeginCapture(stream.handle(), THREAD_LOCAL));
    try {
      launches.run();
    } catch (RuntimeException | Error failure) {
      try {
        end(stream).close();
      } catch (RuntimeException second) {
        failure.addSuppressed(second);
      }
      throw failure;
    }
    return end(stream);
  }

  private static Recording end(CudaStream stream) {
    stream.requireOpen("cuStreamEndCapture");
    CudaContext context = stream.context();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      context.check("cuStreamEndCapture", context.driver().streamEndCapture(stream.handle(), out));
      return new Recording(context, out.get(ValueLayout.JAVA_LONG, 0));
    }
  }

  private static Executable instantiate(CudaStream stream, long graph) {
    CudaContext context = stream.context();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      context.check(
          "cuGraphInstantiateWithFlags", context.driver().graphInstantiate(out, graph, 0));
      return new Executable(stream, out.get(ValueLayout.JAVA_LONG, 0));
    }
  }

  /** What a stream recorded; nothing to destroy if that is nothing. */
  private static final class Recording implements AutoCloseable {
    private final CudaContext context;
    private final long handle;

    Recording(CudaContext context, long handle) {
      this.context = context;
      this.handle = handle;
    }

    @Override
    public void close() {
      if (handle != 0) {
        context.release("cuGraphDestroy", () -> context.driver().graphDestroy(handle));
      }
    }
  }

  /** A graph that can be launched. */
  private static final class Executable implements CapturedGraph {
    private final CudaStream stream;
    private final CudaContext context;
    private final long handle;
    private boolean closed;

    Executable(CudaStream stream, long handle) {
      this.stream = stream;
      this.context = stream.context();
      this.handle = handle;
      context.opened(this, "graph");
    }

    /** Moves what the graph needs to the device, so that the first replay is like the others. */
    void upload() {
      context.check("cuGraphUpload", context.driver().graphUpload(handle, stream.handle()));
    }

    @Override
    public void replay(LaunchContext launch) {
      stream.requireOpen("cuGraphLaunch");
      if (closed) {
        throw BifocalException.of(ErrorCode.CLOSED, "the CUDA graph was destroyed");
      }
      if (launch.stream() != stream.handle()) {
        throw BifocalException.of(
                ErrorCode.WRONG_STREAM,
                "stream of a CUDA graph",
                "0x" + Long.toHexString(launch.stream()),
                "0x" + Long.toHexString(stream.handle()))
            .withRemedy("replay it on the stream it was captured on");
      }
      context.check("cuGraphLaunch", context.driver().graphLaunch(handle, stream.handle()));
    }

    @Override
    public void close() {
      if (closed) {
        return;
      }
      closed = true;
      context.released(this);
      context.releaseWhenIdle(
          "cuGraphExecDestroy", () -> context.driver().graphExecDestroy(handle));
    }
  }
}

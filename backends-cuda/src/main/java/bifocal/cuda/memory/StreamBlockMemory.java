package bifocal.cuda.memory;

import bifocal.core.cache.BlockMemory;
import bifocal.core.workspace.Workspace;
import bifocal.cuda.driver.CudaStream;
import java.lang.foreign.MemorySegment;

/**
 * Clears and copies device memory, for caches and workspaces, in the order of a stream. Whichever
 * thread leases blocks gets the context made current.
 */
public final class StreamBlockMemory implements BlockMemory, Workspace.Zeroing {
  private final CudaStream stream;

  public StreamBlockMemory(CudaStream stream) {
    this.stream = stream;
  }

  @Override
  public void zero(MemorySegment record) {
    stream.context().makeCurrent();
    stream.fill(record, (byte) 0);
  }

  @Override
  public void copy(MemorySegment from, MemorySegment to) {
    stream.context().makeCurrent();
    stream.copyOnDevice(from, 0, to, 0, to.byteSize());
  }
}

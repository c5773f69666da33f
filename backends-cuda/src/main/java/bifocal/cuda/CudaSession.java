package bifocal.cuda;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.LaunchContext;
import bifocal.core.cache.BlockMemory;
import bifocal.core.device.Device;
import bifocal.core.device.DeviceProfile;
import bifocal.core.engine.DeviceSession;
import bifocal.core.workspace.Workspace;
import bifocal.cuda.driver.Closing;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.memory.DeviceBlock;
import bifocal.cuda.memory.StreamBlockMemory;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** A stream of a context and blocks of its memory. */
final class CudaSession implements DeviceSession {
  private final CudaContext context;
  private final CudaStream stream;
  private final CudaMemory memory;
  private final CudaLaunchContext launch;
  private final StreamBlockMemory clearing;
  private final List<DeviceBlock> blocks = new ArrayList<>();
  private boolean closed;

  CudaSession(CudaContext context, AttentionObserver observer) {
    this.context = context;
    this.stream = CudaStream.create(context);
    try {
      this.launch = new CudaLaunchContext(stream, observer);
      this.memory = memory(stream);
    } catch (RuntimeException failure) {
      stream.close();
      throw failure;
    }
    this.clearing = new StreamBlockMemory(stream);
  }

  private static CudaMemory memory(CudaStream stream) {
    return stream.context().device().memoryPools()
        ? CudaMemory.pooled(stream, Long.MAX_VALUE)
        : CudaMemory.unlimited(stream.context());
  }

  @Override
  public DeviceProfile profile() {
    return context.device().profile(InstalledPackages.of(context.device().capability()));
  }

  @Override
  public Device device() {
    return context.place();
  }

  @Override
  public LaunchContext launch() {
    return launch;
  }

  @Override
  public MemorySegment allocate(String name, long bytes) {
    DeviceBlock block = memory.acquire(name, Math.max(1, bytes));
    blocks.add(block);
    return block.segment().asSlice(0, bytes);
  }

  @Override
  public void upload(MemorySegment host, MemorySegment device) {
    stream.copyToDevice(host, device);
  }

  @Override
  public void download(MemorySegment device, MemorySegment host) {
    stream.copyToHost(device, host);
    stream.synchronize();
  }

  @Override
  public void fill(MemorySegment device, byte value) {
    stream.fill(device, value);
  }

  @Override
  public void synchronize() {
    stream.synchronize();
  }

  @Override
  public BlockMemory blocks() {
    return clearing;
  }

  @Override
  public Workspace.Zeroing zeroing() {
    return clearing;
  }

  @Override
  public void close() {
    if (closed) {
      return;
    }
    closed = true;
    Closing closing = new Closing().then(stream::synchronize);
    blocks.reversed().forEach(block -> closing.then(block::close));
    closing.then(memory::close).then(stream::close).end();
  }
}

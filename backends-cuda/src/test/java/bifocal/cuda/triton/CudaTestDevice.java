package bifocal.cuda.triton;

import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.LaunchContext;
import bifocal.core.device.Device;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.memory.DeviceBlock;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** A CUDA device for contract tests: blocks of its memory, and copies that are waited for. */
public final class CudaTestDevice implements TestDevice {
  private final CudaContext context;
  private final CudaStream stream;
  private final CudaMemory memory;
  private final CudaLaunchContext launch;
  private final boolean tablesOnHost;
  private final List<DeviceBlock> blocks = new ArrayList<>();

  public CudaTestDevice(CudaContext context, boolean tablesOnHost) {
    this.context = context;
    this.stream = CudaStream.create(context);
    this.memory = CudaMemory.unlimited(context);
    try {
      this.launch = new CudaLaunchContext(stream, AttentionObserver.NONE);
    } catch (RuntimeException failure) {
      stream.close();
      throw failure;
    }
    this.tablesOnHost = tablesOnHost;
  }

  @Override
  public Device device() {
    return context.place();
  }

  @Override
  public LaunchContext launch() {
    return launch;
  }

  public CudaStream stream() {
    return stream;
  }

  @Override
  public MemorySegment allocate(long bytes) {
    context.makeCurrent();
    DeviceBlock block = memory.acquire("test memory " + blocks.size(), Math.max(1, bytes));
    blocks.add(block);
    stream.fill(block.segment(), (byte) 0);
    return block.segment().asSlice(0, bytes);
  }

  @Override
  public void upload(MemorySegment host, MemorySegment device) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocate(Math.max(1, host.byteSize()), 16);
      copy.copyFrom(host);
      context.makeCurrent();
      stream.copyToDevice(copy, 0, device, 0, host.byteSize());
      stream.synchronize();
    }
  }

  @Override
  public void download(MemorySegment device, MemorySegment host) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment copy = arena.allocate(Math.max(1, host.byteSize()), 16);
      context.makeCurrent();
      stream.copyToHost(device, 0, copy, 0, host.byteSize());
      stream.synchronize();
      host.copyFrom(copy.asSlice(0, host.byteSize()));
    }
  }

  @Override
  public boolean tablesOnHost() {
    return tablesOnHost;
  }

  @Override
  public void close() {
    List<AutoCloseable> parts = new ArrayList<>(List.of(stream, memory));
    parts.addAll(blocks);
    List<RuntimeException> failures = new ArrayList<>();
    for (AutoCloseable part : parts.reversed()) {
      try {
        part.close();
      } catch (RuntimeException e) {
        failures.add(e);
      } catch (Exception e) {
        failures.add(new IllegalStateException(e));
      }
    }
    if (!failures.isEmpty()) {
      throw failures.getFirst();
    }
  }
}

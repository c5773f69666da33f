package bifocal.cuda.driver;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.engine.GraphCapture.CapturedGraph;
import bifocal.cuda.driver.CudaKernel.Attribute;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.memory.DeviceBlock;
import bifocal.cuda.memory.MetadataStaging;
import bifocal.cuda.memory.PinnedBlock;
import bifocal.cuda.memory.StreamBlockMemory;
import java.lang.foreign.Arena;

/** Uses everything there is, once, and closes it. */
final class Scenario {
  static final byte[] IMAGE =
      FakeCuda.image(90, FakeCuda.kernel("attend", 8, 8, 4, 4, TensorMap.BYTES, 1));

  private Scenario() {}

  static void everything(CudaContext context) {
    try (CudaMemory memory = CudaMemory.unlimited(context);
        CudaStream stream = CudaStream.create(context);
        CudaEvent begin = CudaEvent.timed(context);
        CudaEvent end = CudaEvent.timed(context);
        CudaLibrary library = CudaLibrary.load(context, "attention", IMAGE);
        DeviceBlock block = memory.acquire("cache", 4096);
        DeviceBlock other = memory.acquire("workspace", 4096);
        PinnedBlock pinned = PinnedBlock.allocate(context, "pinned", 64);
        MetadataStaging staging = new MetadataStaging(context, 256, 2);
        DeviceRange wrapped = context.range(block.address(), block.bytes());
        CudaMemory pooled = CudaMemory.pooled(stream, 1 << 20);
        DeviceBlock fromPool = pooled.acquire("pooled", 512)) {
      CudaLaunchContext launch = new CudaLaunchContext(stream, AttentionObserver.NONE);
      begin.record(stream);
      copies(launch, block, other, pinned);
      for (int step = 0; step < 3; step++) {
        staging.take().upload(stream, other.segment().asSlice(0, 128));
      }
      new StreamBlockMemory(stream).zero(wrapped.segment());
      new StreamBlockMemory(stream).zero(fromPool.segment());
      launches(launch, library, block);
      try (StreamFork fork = stream.fork()) {
        fork.queue().fillWords(other.segment(), 8);
      }
      end.record(stream);
      stream.waitFor(begin);
      waits(context, stream, begin, end);
    }
  }

  private static void copies(
      CudaLaunchContext launch, DeviceBlock block, DeviceBlock other, PinnedBlock pinned) {
    CudaStream stream = launch.queue();
    stream.copyToDevice(pinned.segment(), block.segment());
    stream.copyToHost(block.segment(), pinned.segment());
    launch.copy(block.segment(), 0, other.segment(), 64, 64);
    stream.fillWords(other.segment(), 7);
  }

  private static void launches(CudaLaunchContext launch, CudaLibrary library, DeviceBlock block) {
    CudaStream stream = launch.queue();
    CudaContext context = stream.context();
    CudaKernel kernel = library.kernel("attend");
    kernel.setAttribute(Attribute.MAX_DYNAMIC_SHARED_BYTES, 100_000);
    kernel.attribute(Attribute.REGISTERS);
    kernel.blocksPerMultiprocessor(128, 1024);
    try (Arena arena = Arena.ofConfined()) {
      TensorMap map = TensorMap.allocate(arena);
      map.encode(
          context,
          new TensorMap.Description(
              TensorMap.Element.BFLOAT16,
              block.address(),
              new long[] {64, 32},
              new long[] {128},
              new int[] {64, 32},
              TensorMap.Swizzle.BYTES_128,
              false));
      PreparedLaunch prepared = kernel.prepare(arena, LaunchShape.of(128, 100_000));
      prepared.setTensorMap(4, map);
      prepared.launch(stream, 3, 2, 1);
      try (CapturedGraph graph =
          new CudaGraphCapture().capture(launch, () -> prepared.launch(stream, 1, 1, 1))) {
        graph.replay(launch);
      }
    }
  }

  private static void waits(
      CudaContext context, CudaStream stream, CudaEvent begin, CudaEvent end) {
    stream.capturing();
    stream.synchronize();
    stream.idle();
    end.synchronize();
    end.done();
    end.millisecondsSince(begin);
    context.freeBytes();
    context.synchronize();
  }
}

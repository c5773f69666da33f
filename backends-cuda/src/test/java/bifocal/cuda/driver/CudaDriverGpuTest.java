package bifocal.cuda.driver;

import static bifocal.cuda.fake.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.engine.GraphCapture.CapturedGraph;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaKernel.Parameter;
import bifocal.cuda.driver.TensorMap.Description;
import bifocal.cuda.driver.TensorMap.Element;
import bifocal.cuda.driver.TensorMap.Swizzle;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.memory.DeviceBlock;
import bifocal.cuda.memory.MetadataStaging;
import bifocal.cuda.memory.PinnedBlock;
import com.sun.management.ThreadMXBean;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** The binding against the driver of an NVIDIA device. */
@Tag("gpu")
final class CudaDriverGpuTest {
  private static final long GIB = 1L << 30;

  private final CudaDriver driver = CudaDriver.load();
  private final CudaContext context = CudaContext.primary(driver, 0);
  private final CudaStream stream = CudaStream.create(context);
  private final CudaLaunchContext launch = new CudaLaunchContext(stream, AttentionObserver.NONE);
  private final CudaMemory memory = CudaMemory.unlimited(context);
  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void everythingIsClosed() {
    arena.close();
    memory.close();
    stream.close();
    assertThat(context.open()).isEmpty();
    context.close();
  }

  private float[] floats(DeviceBlock block, int count) {
    MemorySegment host = arena.allocate(ValueLayout.JAVA_FLOAT, count);
    stream.copyToHost(block.segment(), host);
    stream.synchronize();
    return host.toArray(ValueLayout.JAVA_FLOAT);
  }

  private static float[] ramp(int count, float start) {
    float[] wanted = new float[count];
    for (int i = 0; i < count; i++) {
      wanted[i] = start + i;
    }
    return wanted;
  }

  @Test
  void theDeviceIsDescribed() {
    CudaDevice device = driver.devices().head();
    System.out.println("driver " + driver + ", " + device);

    assertThat(device.capability().major()).isGreaterThanOrEqualTo(8);
    assertThat(device.multiprocessors()).isPositive();
    assertThat(device.memoryBytes()).isGreaterThan(GIB);
    assertThat(device.sharedBytesPerBlock()).isGreaterThanOrEqualTo(99 << 10);
    assertThat(device.name()).isNotBlank();
    assertThat(context.freeBytes()).isBetween(1L, device.memoryBytes());
  }

  @Test
  void errorsHaveTheDriversNamesAndTexts() {
    assertThat(driver.error(700).name()).isEqualTo("CUDA_ERROR_ILLEGAL_ADDRESS");
    assertThat(driver.error(700).text()).contains("illegal memory access");
    assertThat(driver.error(98765))
        .isEqualTo(new CudaError(98765, "unknown to the driver", "no text"));
  }

  @Test
  void bytesComeBackFromPinnedAndPageableMemory() {
    long seed = new Random().nextLong();
    System.out.println("seed " + seed);
    byte[] bytes = new byte[1 << 20];
    new Random(seed).nextBytes(bytes);
    MemorySegment pageable = arena.allocate(bytes.length);
    pageable.copyFrom(MemorySegment.ofArray(bytes));
    try (DeviceBlock a = memory.acquire("a", bytes.length);
        DeviceBlock b = memory.acquire("b", bytes.length);
        PinnedBlock pinned = PinnedBlock.allocate(context, "pinned", bytes.length)) {
      stream.copyToDevice(pageable, a.segment());
      launch.copy(a.segment(), 0, b.segment(), 0, bytes.length);
      stream.copyToHost(b.segment(), pinned.segment());
      stream.synchronize();

      assertThat(pinned.segment().toArray(ValueLayout.JAVA_BYTE)).isEqualTo(bytes);
    }
  }

  @Test
  void memoryBeyondFourGibibytesIsReached() {
    assumeTrue(context.freeBytes() > 6 * GIB, "less than 6 GiB are free");
    try (DeviceBlock block = memory.acquire("large", 5 * GIB)) {
      MemorySegment host = arena.allocate(8);
      stream.fill(block.segment(), (byte) 0x11);
      stream.fillWords(block.segment().asSlice(5 * GIB - 4), 0x0A0B0C0D);
      stream.copyToHost(block.segment(), 5 * GIB - 8, host, 0, 8);
      stream.synchronize();

      assertThat(host.get(ValueLayout.JAVA_INT, 0)).isEqualTo(0x11111111);
      assertThat(host.get(ValueLayout.JAVA_INT, 4)).isEqualTo(0x0A0B0C0D);
    }
  }

  @Test
  void moreMemoryThanTheDeviceHasIsRefusedByTheEstimateAndByTheDriver() {
    long more = 2 * driver.devices().head().memoryBytes();

    assertThatThrownBy(() -> memory.acquire("cache", more))
        .satisfies(refused(ErrorCode.DEVICE_MEMORY_EXHAUSTED, "left by the device"));
    assertThatThrownBy(() -> DeviceAllocation.allocate(context, "cache", more))
        .satisfies(refused(ErrorCode.DEVICE_MEMORY_EXHAUSTED, "CUDA_ERROR_OUT_OF_MEMORY"));
  }

  @Test
  void aKernelReadsItsParametersWhereTheDriverSaysTheyAre() {
    try (CudaLibrary library = CudaLibrary.load(context, "ramp", RampKernel.PTX);
        DeviceBlock out = memory.acquire("out", 1000 * Float.BYTES)) {
      CudaKernel kernel = library.kernel(RampKernel.SYMBOL);
      assertThat(kernel.parameters())
          .containsExactly(
              new Parameter(0, 8), new Parameter(8, 4), new Parameter(12, 4), new Parameter(16, 8));
      assertThat(kernel.attribute(CudaKernel.Attribute.MAX_THREADS_PER_BLOCK)).isPositive();
      assertThat(kernel.blocksPerMultiprocessor(128, 0)).isPositive();
      kernel.setAttribute(CudaKernel.Attribute.MAX_DYNAMIC_SHARED_BYTES, 90 << 10);

      PreparedLaunch prepared = kernel.prepare(arena, LaunchShape.of(128, 90 << 10).overlap());
      prepared.setLong(0, out.address());
      prepared.setInt(1, 1000);
      prepared.setFloat(2, 0.5f);
      prepared.launch(stream, 8, 1, 1);

      assertThat(floats(out, 1000)).containsExactly(ramp(1000, 0.5f));
    }
  }

  @Test
  void codeThatIsNoneIsRefusedWithTheDriversText() {
    assertThatThrownBy(
            () -> {
              // Some drivers look at code when it is loaded, some when a kernel is asked of it.
              try (CudaLibrary rubbish =
                  CudaLibrary.load(context, "rubbish", new byte[] {1, 2, 3, 4})) {
                rubbish.kernel("bifocal_ramp");
              }
            })
        .satisfies(refused(ErrorCode.NATIVE_FAILED, "CUDA_ERROR_"));
    try (CudaLibrary library = CudaLibrary.load(context, "ramp", RampKernel.PTX)) {
      assertThatThrownBy(() -> library.kernel("bifocal_slope"))
          .satisfies(refused(ErrorCode.NATIVE_FAILED, "CUDA_ERROR_NOT_FOUND"));
    }
  }

  @Test
  void eventsOrderStreamsAndTellTime() {
    try (DeviceBlock block = memory.acquire("block", 256 << 20);
        CudaStream other = CudaStream.create(context);
        CudaEvent begin = CudaEvent.timed(context);
        CudaEvent end = CudaEvent.timed(context)) {
      MemorySegment host = arena.allocate(4);
      begin.record(stream);
      for (int i = 0; i < 20; i++) {
        stream.fill(block.segment(), (byte) i);
      }
      end.record(stream);
      other.waitFor(end);
      other.copyToHost(block.segment(), block.bytes() - 4, host, 0, 4);
      other.synchronize();

      assertThat(host.toArray(ValueLayout.JAVA_BYTE)).containsOnly(19);
      assertThat(end.done()).isTrue();
      assertThat(end.millisecondsSince(begin)).isPositive();
      stream.synchronize();
      assertThat(stream.idle()).isTrue();
    }
  }

  @Test
  void whatAStreamRecordedRunsAgainWithTheValuesItWasRecordedWith() {
    try (CudaLibrary library = CudaLibrary.load(context, "ramp", RampKernel.PTX);
        DeviceBlock out = memory.acquire("out", 64 * Float.BYTES)) {
      PreparedLaunch prepared =
          library.kernel(RampKernel.SYMBOL).prepare(arena, LaunchShape.of(64, 0));
      prepared.setLong(0, out.address());
      prepared.setInt(1, 64);
      prepared.setFloat(2, 3f);
      stream.fill(out.segment(), (byte) 0);
      try (CapturedGraph graph =
          new CudaGraphCapture().capture(launch, () -> prepared.launch(stream, 1, 1, 1))) {
        assertThat(floats(out, 64)).containsOnly(0f);
        prepared.setFloat(2, 7f);

        graph.replay(launch);

        assertThat(floats(out, 64)).containsExactly(ramp(64, 3f));
      }
    }
  }

  @Test
  void workBesideAStreamComesAfterWhatWasThereAndBeforeWhatFollows() {
    long bytes = 256 << 20;
    try (DeviceBlock block = memory.acquire("block", bytes);
        DeviceBlock copy = memory.acquire("copy", bytes)) {
      MemorySegment host = arena.allocate(8);
      Runnable forked =
          () -> {
            for (int i = 0; i < 20; i++) {
              stream.fill(block.segment(), (byte) i);
            }
            try (StreamFork fork = stream.fork()) {
              fork.queue().copyOnDevice(block.segment(), 0, copy.segment(), 0, bytes);
            }
            stream.fill(block.segment(), (byte) 99);
          };
      stream.prepareFork();
      try (CapturedGraph graph = new CudaGraphCapture().capture(launch, forked)) {
        for (Runnable way : List.<Runnable>of(forked, () -> graph.replay(launch))) {
          stream.fill(copy.segment(), (byte) 0);
          way.run();
          stream.copyToHost(copy.segment(), 0, host, 0, 4);
          stream.copyToHost(copy.segment(), bytes - 4, host, 4, 4);
          stream.synchronize();
          assertThat(host.toArray(ValueLayout.JAVA_BYTE)).containsOnly(19);
        }
      }
    }
  }

  @Test
  void waitingInsideACaptureIsRefusedAndTheStreamRunsAgain() {
    assertThatThrownBy(() -> new CudaGraphCapture().capture(launch, stream::synchronize))
        .satisfies(refused(ErrorCode.NOT_CAPTURABLE, "cuStreamSynchronize"));

    assertThat(stream.capturing()).isFalse();
    stream.synchronize();
  }

  @Test
  void aTensorMapIsEncodedAndOneThatCannotBeIsRefused() {
    assumeTrue(context.device().capability().major() >= 9, "no copy engine for tensor maps");
    try (DeviceBlock block = memory.acquire("tensor", 64 * 1024)) {
      TensorMap map = TensorMap.allocate(arena);
      map.encode(context, tensor(block.address()));

      assertThat(map.block().toArray(ValueLayout.JAVA_LONG)).isNotEqualTo(new long[16]);
      assertThatThrownBy(() -> map.encode(context, tensor(block.address() + 8)))
          .satisfies(refused(ErrorCode.NATIVE_FAILED, "cuTensorMapEncodeTiled"));
    }
  }

  private static Description tensor(long address) {
    return new Description(
        Element.BFLOAT16,
        address,
        new long[] {64, 128},
        new long[] {128},
        new int[] {64, 64},
        Swizzle.BYTES_128,
        false);
  }

  @Test
  void theHostsContextStreamAndMemoryAreUsed() {
    try (CudaContext adopted = CudaContext.adoptCurrent(driver);
        DeviceBlock block = memory.acquire("the host's", 4096)) {
      assertThat(adopted.handle()).isEqualTo(context.handle());
      CudaStream same = CudaStream.adopt(adopted, stream.handle());
      try (DeviceRange range = adopted.range(block.address() + 1024, 2048)) {
        same.fill(range.segment(), (byte) 3);
        same.synchronize();
      }
      CudaStream.adopt(adopted, 0).synchronize();
      assertThatThrownBy(() -> adopted.range(arena.allocate(64).address(), 64))
          .satisfies(refused(ErrorCode.INVALID_PARAMETER, "memory that the driver knows"));
    }
  }

  @Test
  void metadataArrivesStepAfterStep() {
    try (MetadataStaging staging = new MetadataStaging(context, 64, 2);
        DeviceBlock device = memory.acquire("metadata", 64)) {
      for (int step = 0; step < 100; step++) {
        MetadataStaging.Slot slot = staging.take();
        slot.host().fill((byte) step);
        slot.upload(stream, device.segment());
        MemorySegment host = arena.allocate(64);
        stream.copyToHost(device.segment(), host);
        stream.synchronize();
        assertThat(host.toArray(ValueLayout.JAVA_BYTE)).containsOnly(step);
      }
    }
  }

  @Test
  void aLaunchAllocatesNothingAndItsHostCostIsPrinted() {
    try (CudaLibrary library = CudaLibrary.load(context, "ramp", RampKernel.PTX);
        DeviceBlock out = memory.acquire("out", 64 * Float.BYTES)) {
      PreparedLaunch prepared =
          library.kernel(RampKernel.SYMBOL).prepare(arena, LaunchShape.of(64, 0));
      prepared.setLong(0, out.address());
      prepared.setInt(1, 64);
      ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
      long bytes = Long.MAX_VALUE;
      long nanoseconds = Long.MAX_VALUE;
      for (int round = 0; round < 200; round++) {
        long before = threads.getCurrentThreadAllocatedBytes();
        long start = System.nanoTime();
        for (int i = 0; i < 100; i++) {
          launch.requireOwner();
          prepared.setFloat(2, i);
          prepared.launch(stream, 1, 1, 1);
        }
        nanoseconds = Math.min(nanoseconds, System.nanoTime() - start);
        bytes = threads.getCurrentThreadAllocatedBytes() - before;
        stream.synchronize();
      }
      System.out.println("host nanoseconds per launch: " + nanoseconds / 100);

      assertThat(bytes).as("bytes allocated by the last 100 launches").isZero();
      assertThat(nanoseconds / 100).as("host nanoseconds per launch").isLessThan(8_000);
    }
  }

  @Test
  void aKernelsFaultLosesTheDeviceAndTheProcessLives() throws IOException, InterruptedException {
    Process program =
        new ProcessBuilder(
                List.of(
                    Path.of(System.getProperty("java.home", ""), "bin", "java").toString(),
                    "--enable-native-access=ALL-UNNAMED",
                    "-cp",
                    System.getProperty("java.class.path", ""),
                    FaultProgram.class.getName()))
            .redirectErrorStream(true)
            .start();
    String said = new String(program.getInputStream().readAllBytes(), StandardCharsets.UTF_8);

    assertThat(program.waitFor()).as(said).isZero();
    assertThat(said.lines())
        .satisfiesExactly(
            line -> assertThat(line).contains("DEVICE_LOST", "CUDA_ERROR_ILLEGAL_ADDRESS"),
            line -> assertThat(line).contains("DEVICE_LOST", "was not called"),
            line -> assertThat(line).contains("DEVICE_LOST", "was not called"),
            line -> assertThat(line).isEqualTo("closed"));
  }
}

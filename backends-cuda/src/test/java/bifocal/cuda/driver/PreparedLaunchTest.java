package bifocal.cuda.driver;

import static bifocal.cuda.fake.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaKernel.Attribute;
import bifocal.cuda.driver.CudaKernel.Parameter;
import bifocal.cuda.driver.TensorMap.Description;
import bifocal.cuda.driver.TensorMap.Element;
import bifocal.cuda.driver.TensorMap.Swizzle;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.fake.FakeCuda.Launch;
import com.sun.management.ThreadMXBean;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.management.ManagementFactory;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A launch hands the driver what was set, where the kernel reads it. */
final class PreparedLaunchTest {
  private final FakeCuda fake = FakeCuda.resetOrSkip();
  private final CudaContext context = CudaContext.primary(fake.driver(), 0);
  private final CudaStream stream = CudaStream.create(context);
  private final CudaLibrary library =
      CudaLibrary.load(
          context,
          "attention",
          FakeCuda.image(
              90,
              FakeCuda.kernel("attend", 8, 4, 4, 8, 1, TensorMap.BYTES, 8),
              FakeCuda.kernel("nothing")));
  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void everythingIsClosed() {
    arena.close();
    library.close();
    stream.close();
    context.close();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  private static Description tensor(long address, int boxRows) {
    return new Description(
        Element.BFLOAT16,
        address,
        new long[] {64, 32},
        new long[] {128},
        new int[] {64, boxRows},
        Swizzle.BYTES_128,
        false);
  }

  @Test
  void theDriverTellsEachParameterOfAKernel() {
    assertThat(library.kernel("attend").parameters())
        .containsExactly(
            new Parameter(0, 8),
            new Parameter(8, 4),
            new Parameter(12, 4),
            new Parameter(16, 8),
            new Parameter(24, 1),
            new Parameter(64, 128),
            new Parameter(192, 8));
    assertThat(library.kernel("nothing").parameters()).isEmpty();
  }

  @Test
  void valuesArriveAtTheirParametersOffsets() {
    PreparedLaunch launch = library.kernel("attend").prepare(arena, LaunchShape.of(128, 4096));
    TensorMap map = TensorMap.allocate(arena);
    map.encode(context, tensor(0x4000, 32));
    launch.setLong(0, 0x1122334455667788L);
    launch.setInt(1, -7);
    launch.setFloat(2, 0.125f);
    launch.setLong(3, 5);
    launch.setByte(4, (byte) 1);
    launch.setTensorMap(5, map);
    launch.setLong(6, -1);

    launch.launch(stream, 7, 3, 2);

    Launch seen = fake.launches().single();
    assertThat(seen.kernel()).isEqualTo("attend");
    assertThat(new int[] {seen.gridX(), seen.gridY(), seen.gridZ()}).containsExactly(7, 3, 2);
    assertThat(seen.threads()).isEqualTo(128);
    assertThat(seen.sharedBytes()).isEqualTo(4096);
    assertThat(seen.stream()).isEqualTo(stream.handle());
    assertThat(seen.attributes().toJavaMap()).isEmpty();
    assertThat(seen.parameters().capacity()).isEqualTo(200);
    assertThat(seen.parameters().getLong(0)).isEqualTo(0x1122334455667788L);
    assertThat(seen.parameters().getInt(8)).isEqualTo(-7);
    assertThat(seen.parameters().getFloat(12)).isEqualTo(0.125f);
    assertThat(seen.parameters().getLong(16)).isEqualTo(5);
    assertThat(seen.parameters().get(24)).isEqualTo((byte) 1);
    assertThat(seen.parameters().getLong(64)).isEqualTo(0x4000);
    assertThat(seen.parameters().getLong(192)).isEqualTo(-1);
  }

  @Test
  void valuesStayUntilTheyAreSetAgain() {
    PreparedLaunch launch = library.kernel("attend").prepare(arena, LaunchShape.of(32, 0));
    launch.setInt(1, 3);
    launch.launch(stream, 1, 1, 1);
    launch.setLong(0, 9);
    launch.launch(stream, 2, 1, 1);

    assertThat(fake.launches().map(seen -> seen.parameters().getInt(8))).containsExactly(3, 3);
    assertThat(fake.launches().map(seen -> seen.parameters().getLong(0))).containsExactly(0L, 9L);
    assertThat(fake.launches().map(Launch::gridX)).containsExactly(1, 2);
  }

  @Test
  void oneKernelsLaunchesDoNotShareTheirValues() {
    CudaKernel kernel = library.kernel("attend");
    PreparedLaunch first = kernel.prepare(arena, LaunchShape.of(32, 0));
    PreparedLaunch second = kernel.prepare(arena, LaunchShape.of(32, 0));
    first.setInt(1, 1);
    second.setInt(1, 2);

    first.launch(stream, 1, 1, 1);
    second.launch(stream, 1, 1, 1);

    assertThat(fake.launches().map(seen -> seen.parameters().getInt(8))).containsExactly(1, 2);
  }

  @Test
  void attributesOfTheShapeReachTheDriver() {
    CudaKernel kernel = library.kernel("nothing");
    kernel.prepare(arena, LaunchShape.of(32, 0).overlap()).launch(stream, 1, 1, 1);
    kernel.prepare(arena, LaunchShape.of(32, 0).clusters(4)).launch(stream, 8, 1, 1);
    kernel.prepare(arena, new LaunchShape(32, 0, 1, false, true)).launch(stream, 1, 1, 1);
    kernel.prepare(arena, new LaunchShape(32, 0, 2, true, true)).launch(stream, 2, 1, 1);

    assertThat(fake.launches().map(seen -> seen.attributes().toJavaMap()))
        .containsExactly(
            Map.of(6, 1), Map.of(4, 4, 5, 1), Map.of(2, 1), Map.of(2, 1, 4, 2, 5, 1, 6, 1));
  }

  @Test
  void aValueOfAnotherSizeThanTheParameterIsRefused() {
    PreparedLaunch launch = library.kernel("attend").prepare(arena, LaunchShape.of(32, 0));

    assertThatThrownBy(() -> launch.setInt(0, 1))
        .satisfies(
            refused(ErrorCode.INVALID_PARAMETER, "parameter 0 of attend", "4 bytes", "8 bytes"));
    assertThatThrownBy(() -> launch.setLong(7, 1))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER, "parameter 7", "0..6"));
    assertThatThrownBy(() -> launch.setFloat(-1, 1))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER, "parameter -1"));
  }

  @Test
  void aGridThatNoDeviceTakesIsRefusedBeforeTheDriverIsCalled() {
    PreparedLaunch launch =
        library.kernel("nothing").prepare(arena, LaunchShape.of(32, 0).clusters(2));
    int before = fake.calls().size();

    for (int[] grid :
        new int[][] {
          {0, 1, 1}, {2, 0, 1}, {2, 1, 0}, {-2, 1, 1}, {2, 65536, 1}, {2, 1, 65536}, {3, 1, 1}
        }) {
      assertThatThrownBy(() -> launch.launch(stream, grid[0], grid[1], grid[2]))
          .satisfies(refused(ErrorCode.INVALID_PARAMETER, grid[0] + " x " + grid[1]));
    }
    assertThat(fake.calls().size()).isEqualTo(before);
  }

  @Test
  void aShapeThatNoDeviceTakesIsRefused() {
    assertThatThrownBy(() -> LaunchShape.of(1025, 0))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER, "1025 threads"));
    assertThatThrownBy(() -> LaunchShape.of(0, 0)).satisfies(refused(ErrorCode.INVALID_PARAMETER));
    assertThatThrownBy(() -> LaunchShape.of(32, -1))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER));
    assertThatThrownBy(() -> LaunchShape.of(32, 0).clusters(0))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER));
  }

  @Test
  void aLaunchThatTheDriverRefusesTellsWhich() {
    CudaKernel kernel = library.kernel("nothing");
    PreparedLaunch launch = kernel.prepare(arena, LaunchShape.of(32, 100_000));
    assertThatThrownBy(() -> launch.launch(stream, 1, 1, 1))
        .satisfies(
            refused(ErrorCode.NATIVE_FAILED, "cuLaunchKernelEx of nothing", "invalid argument"));

    kernel.setAttribute(Attribute.MAX_DYNAMIC_SHARED_BYTES, 100_000);
    launch.launch(stream, 1, 1, 1);

    assertThat(kernel.attribute(Attribute.MAX_DYNAMIC_SHARED_BYTES)).isEqualTo(100_000);
    assertThat(fake.launches().single().sharedBytes()).isEqualTo(100_000);
  }

  @Test
  void kernelsThatWereUnloadedAreRefused() {
    CudaLibrary gone = CudaLibrary.load(context, "gone", Scenario.IMAGE);
    CudaKernel kernel = gone.kernel("attend");
    PreparedLaunch launch = kernel.prepare(arena, LaunchShape.of(32, 0));
    gone.close();
    gone.close();

    assertThatThrownBy(() -> launch.launch(stream, 1, 1, 1))
        .satisfies(refused(ErrorCode.CLOSED, "gone"));
    assertThatThrownBy(() -> kernel.attribute(Attribute.REGISTERS))
        .satisfies(refused(ErrorCode.CLOSED));
    assertThatThrownBy(() -> gone.kernel("attend")).satisfies(refused(ErrorCode.CLOSED));
  }

  @Test
  void codeThatTheDriverRefusesKeepsItsText() {
    assertThatThrownBy(() -> CudaLibrary.load(context, "other", FakeCuda.image(80)))
        .satisfies(
            refused(ErrorCode.NATIVE_FAILED, "cuLibraryLoadData of other", "no kernel image"));
    assertThatThrownBy(() -> CudaLibrary.load(context, "rubbish", new byte[] {1, 2, 3}))
        .satisfies(refused(ErrorCode.NATIVE_FAILED, "rubbish", "kernel image is invalid"));
    assertThatThrownBy(() -> library.kernel("attention"))
        .satisfies(
            refused(ErrorCode.NATIVE_FAILED, "attention in attention", "named symbol not found"));
  }

  @Test
  void occupancyIsTheDriversAnswer() {
    assertThat(library.kernel("nothing").blocksPerMultiprocessor(512, 0)).isEqualTo(4);
    assertThat(library.kernel("nothing").blocksPerMultiprocessor(128, 100_000)).isEqualTo(2);
  }

  @Test
  void aTensorMapThatTheDriverRefusesKeepsItsText() {
    TensorMap map = TensorMap.allocate(arena);

    assertThatThrownBy(() -> map.encode(context, tensor(0x4008, 32)))
        .satisfies(refused(ErrorCode.NATIVE_FAILED, "cuTensorMapEncodeTiled"));
    assertThatThrownBy(() -> map.encode(context, tensor(0x4000, 257)))
        .satisfies(refused(ErrorCode.NATIVE_FAILED));
  }

  @Test
  void aTensorMapOfSizesThatDoNotFitTogetherIsRefused() {
    assertThatThrownBy(
            () ->
                new Description(
                    Element.FLOAT16,
                    0x4000,
                    new long[] {64, 32},
                    new long[] {128, 128},
                    new int[] {64, 32},
                    Swizzle.NONE,
                    false))
        .satisfies(refused(ErrorCode.SHAPE_MISMATCH, "2 sizes, 2 strides, 2 box sizes"));
  }

  @Test
  void settingAndLaunchingAllocateNothing() {
    PreparedLaunch launch = library.kernel("attend").prepare(arena, LaunchShape.of(128, 0));
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    CudaLaunchContext owner = new CudaLaunchContext(stream, AttentionObserver.NONE);
    long bytes = Long.MAX_VALUE;
    for (int round = 0; round < 40 && bytes != 0; round++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 200; i++) {
        owner.requireOwner();
        launch.setLong(0, i);
        launch.setInt(1, i);
        launch.setFloat(2, i);
        launch.launch(stream, 1 + i, 2, 1);
      }
      bytes = threads.getCurrentThreadAllocatedBytes() - before;
    }

    assertThat(bytes).as("bytes allocated by 200 launches").isZero();
  }

  @Test
  void copyingAndMarkingAllocateNothing() {
    try (DeviceAllocation block = DeviceAllocation.allocate(context, "block", 4096);
        CudaEvent event = CudaEvent.create(context)) {
      MemorySegment segment = block.segment();
      MemorySegment host = arena.allocate(64);
      ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
      long bytes = Long.MAX_VALUE;
      for (int round = 0; round < 40 && bytes != 0; round++) {
        long before = threads.getCurrentThreadAllocatedBytes();
        for (int i = 0; i < 200; i++) {
          stream.copyToDevice(host, segment);
          stream.copyOnDevice(segment, 0, segment, 64, 64);
          stream.fill(segment, (byte) 0);
          event.record(stream);
          stream.waitFor(event);
        }
        bytes = threads.getCurrentThreadAllocatedBytes() - before;
      }

      assertThat(bytes).as("bytes allocated by 200 rounds").isZero();
    }
  }
}

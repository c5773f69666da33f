package bifocal.cuda.driver;

import static bifocal.cuda.fake.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.engine.DeviceExecutor;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.fake.FakeCuda;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

/** A context has one owner, knows what is open in it, and says that the device is lost. */
final class CudaContextTest {
  private final FakeCuda fake = FakeCuda.resetOrSkip();

  @Test
  void thePrimaryContextIsReleasedOnce() {
    CudaContext context = CudaContext.primary(fake.driver(), 0);
    assertThat(fake.currentContext()).isEqualTo(context.handle());

    context.close();
    context.close();

    assertThat(fake.live().toJavaMap()).isEmpty();
    assertThat(fake.calls().count("cuDevicePrimaryCtxRelease_v2"::equals)).isEqualTo(1);
  }

  @Test
  void twoEnginesShareThePrimaryContextAndTheFirstLeavesItToTheSecond() {
    CudaContext first = CudaContext.primary(fake.driver(), 0);
    CudaContext second = CudaContext.primary(fake.driver(), 0);

    first.close();

    second.synchronize();
    second.close();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  @Test
  void theHostsContextIsUsedAndNeverReleased() {
    long host = fake.hostContext(0);
    long stream = fake.hostStream(host);

    try (CudaContext context = CudaContext.adopt(fake.driver(), host)) {
      CudaStream adopted = CudaStream.adopt(context, stream);
      assertThat(new CudaLaunchContext(adopted, AttentionObserver.NONE).stream()).isEqualTo(stream);
      adopted.close();
    }

    assertThat(fake.live().toJavaMap()).containsOnlyKeys("context", "stream");
    assertThat(fake.calls()).doesNotContain("cuStreamDestroy_v2", "cuDevicePrimaryCtxRelease_v2");
  }

  @Test
  void theCurrentContextIsFoundWithItsDevice() {
    fake.devices(2, 9, 0, 1 << 20);
    long host = fake.hostContext(1);
    CudaContext.adopt(fake.driver(), host).close();

    try (CudaContext context = CudaContext.adoptCurrent(fake.driver())) {
      assertThat(context.handle()).isEqualTo(host);
      assertThat(context.place()).hasToString("cuda:1");
    }
  }

  @Test
  void aThreadWithoutAContextHasNoneToAdopt() throws InterruptedException {
    fake.driver();
    Throwable[] thrown = new Throwable[1];
    Thread bare =
        Thread.ofPlatform()
            .start(
                () -> {
                  try {
                    CudaContext.adoptCurrent(fake.driver()).close();
                  } catch (BifocalException e) {
                    thrown[0] = e;
                  }
                });
    bare.join();

    assertThat(thrown[0]).satisfies(refused(ErrorCode.INVALID_PARAMETER, "adopted CUDA context"));
  }

  @Test
  void aStreamOfAnotherContextIsRefused() {
    long other = fake.hostStream(fake.hostContext(0));

    try (CudaContext context = CudaContext.primary(fake.driver(), 0)) {
      assertThatThrownBy(() -> CudaStream.adopt(context, other))
          .satisfies(refused(ErrorCode.DEVICE_MISMATCH, "context of an adopted stream"));
    }
  }

  @Test
  void aContextInUseStaysAndNamesWhatIsOpen() {
    CudaContext context = CudaContext.primary(fake.driver(), 0);
    CudaStream stream = CudaStream.create(context);
    CudaLibrary library = CudaLibrary.load(context, "attention", Scenario.IMAGE);

    assertThatThrownBy(context::close)
        .satisfies(refused(ErrorCode.IN_USE, "library attention", "stream"));

    library.close();
    stream.close();
    context.close();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  @Test
  void aClosedContextRefusesEverything() {
    CudaContext context = CudaContext.primary(fake.driver(), 0);
    context.close();
    int before = fake.calls().size();

    assertThatThrownBy(() -> CudaStream.create(context)).satisfies(refused(ErrorCode.CLOSED));
    assertThat(fake.calls().size()).isEqualTo(before);
  }

  @Test
  void aKernelsFaultIsToldByTheNextCallAndByEveryLaterOneWithoutAskingTheDriver() {
    CudaContext context = CudaContext.primary(fake.driver(), 0);
    CudaStream stream = CudaStream.create(context);
    fake.fail("cuStreamSynchronize", 1, 716);

    assertThatThrownBy(stream::synchronize)
        .satisfies(
            refused(
                ErrorCode.DEVICE_LOST,
                "cuStreamSynchronize",
                "716 CUDA_ERROR_MISALIGNED_ADDRESS (misaligned address)"));
    int asked = fake.calls().size();

    assertThatThrownBy(() -> CudaEvent.create(context))
        .satisfies(refused(ErrorCode.DEVICE_LOST, "was not called", "716", "new process"));
    assertThatThrownBy(stream::idle).satisfies(refused(ErrorCode.DEVICE_LOST, "cuStreamQuery"));
    stream.close();
    context.close();
    assertThat(fake.calls().size()).isEqualTo(asked);
    assertThat(context.lost().map(CudaError::name))
        .containsExactly("CUDA_ERROR_MISALIGNED_ADDRESS");
  }

  @Test
  void anErrorThatEndsNothingLosesNothing() {
    try (CudaContext context = CudaContext.primary(fake.driver(), 0);
        CudaStream stream = CudaStream.create(context)) {
      fake.fail("cuStreamSynchronize", 1, 401);
      assertThatThrownBy(stream::synchronize).satisfies(refused(ErrorCode.NATIVE_FAILED));

      stream.synchronize();
      assertThat(context.lost()).isEmpty();
    }
  }

  @Test
  void memoryOfTheHostsAllocatorIsWrappedAndNeverFreed() {
    try (CudaContext context = CudaContext.primary(fake.driver(), 0);
        DeviceAllocation host = DeviceAllocation.allocate(context, "the host's", 4096)) {
      DeviceRange range = context.range(host.segment().address() + 1024, 2048);
      MemorySegment segment = range.segment();
      range.close();
      range.close();

      assertThat(segment.scope().isAlive()).isFalse();
      assertThat(fake.live().get("memory")).containsExactly(1L);
    }
  }

  @Test
  void memoryThatTheDriverDoesNotKnowIsNotWrapped() {
    try (CudaContext context = CudaContext.primary(fake.driver(), 0);
        DeviceAllocation block = DeviceAllocation.allocate(context, "block", 4096)) {
      long address = block.segment().address();

      assertThatThrownBy(() -> context.range(address, 4096 + 1))
          .satisfies(refused(ErrorCode.INVALID_PARAMETER, "memory that the driver knows"));
      assertThatThrownBy(() -> context.range(64, 16))
          .satisfies(refused(ErrorCode.INVALID_PARAMETER, "0x40"));
      assertThatThrownBy(() -> context.range(address, 0))
          .satisfies(refused(ErrorCode.INVALID_PARAMETER, "0 bytes"));
      assertThatThrownBy(() -> context.range(address, Long.MAX_VALUE))
          .satisfies(refused(ErrorCode.INVALID_PARAMETER));
    }
  }

  @Test
  void memoryOfAnotherDeviceIsNotWrapped() {
    fake.devices(2, 9, 0, 1 << 20);
    try (CudaContext other = CudaContext.primary(fake.driver(), 1);
        DeviceAllocation block = DeviceAllocation.allocate(other, "block", 64);
        CudaContext context = CudaContext.primary(fake.driver(), 0)) {
      assertThatThrownBy(() -> context.range(block.segment().address(), 64))
          .satisfies(refused(ErrorCode.DEVICE_MISMATCH, "cuda:1", "cuda:0"));
    }
  }

  @Test
  void theHostCannotTouchDeviceMemoryThroughItsSegment() {
    try (CudaContext context = CudaContext.primary(fake.driver(), 0);
        DeviceAllocation block = DeviceAllocation.allocate(context, "block", 64);
        Arena arena = Arena.ofConfined()) {
      MemorySegment device = block.segment();
      MemorySegment host = arena.allocate(64);

      assertThatThrownBy(() -> device.get(ValueLayout.JAVA_INT, 0))
          .isInstanceOf(WrongThreadException.class);
      assertThatThrownBy(() -> device.asSlice(8, 8).fill((byte) 1))
          .isInstanceOf(WrongThreadException.class);
      assertThatThrownBy(() -> host.copyFrom(device)).isInstanceOf(WrongThreadException.class);
      assertThat(device.asSlice(16).address()).isEqualTo(device.address() + 16);
    }
  }

  @Test
  void anotherThreadMayNotRunAStep() throws InterruptedException {
    try (CudaContext context = CudaContext.primary(fake.driver(), 0);
        CudaStream stream = CudaStream.create(context)) {
      CudaLaunchContext launch = new CudaLaunchContext(stream, AttentionObserver.NONE);
      launch.requireOwner();
      Throwable[] thrown = new Throwable[1];
      Thread other =
          Thread.ofPlatform()
              .start(
                  () -> {
                    try {
                      launch.requireOwner();
                    } catch (BifocalException e) {
                      thrown[0] = e;
                    }
                  });
      other.join();

      assertThat(thrown[0]).satisfies(refused(ErrorCode.WRONG_THREAD));
    }
  }

  @Test
  void aStepFindsItsContextAgainAfterTheHostUsedAnother() {
    long host = fake.hostContext(0);
    try (CudaContext context = CudaContext.primary(fake.driver(), 0);
        CudaStream stream = CudaStream.create(context)) {
      CudaLaunchContext launch = new CudaLaunchContext(stream, AttentionObserver.NONE);
      CudaContext.adopt(fake.driver(), host).close();
      assertThat(fake.currentContext()).isEqualTo(host);

      launch.requireOwner();

      assertThat(fake.currentContext()).isEqualTo(context.handle());
    }
  }

  @Test
  void aThreadOfItsOwnRunsSteps() {
    try (CudaContext context = CudaContext.primary(fake.driver(), 0);
        DeviceExecutor<CudaLaunchContext> device =
            DeviceExecutor.start(
                "device",
                () -> new CudaLaunchContext(CudaStream.create(context), AttentionObserver.NONE),
                launch -> launch.queue().close())) {
      assertThat(
              device.<Boolean>run(
                  launch -> {
                    launch.requireOwner();
                    return launch.queue().idle();
                  }))
          .isTrue();
    }
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  @Test
  void theLaunchContextOfAnotherPlatformIsRefused() {
    assertThatThrownBy(() -> CudaLaunchContext.of(new HostLaunchContext(AttentionObserver.NONE)))
        .satisfies(refused(ErrorCode.DEVICE_MISMATCH, "cpu:0"));
  }
}

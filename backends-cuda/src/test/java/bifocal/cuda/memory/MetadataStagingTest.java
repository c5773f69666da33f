package bifocal.cuda.memory;

import static bifocal.cuda.fake.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.memory.MetadataStaging.Slot;
import io.vavr.collection.Seq;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** A step's metadata goes over in one copy, and no slot is written while the device reads it. */
final class MetadataStagingTest {
  private final FakeCuda fake = FakeCuda.resetOrSkip();
  private final CudaContext context = CudaContext.primary(fake.driver(), 0);
  private final CudaStream stream = CudaStream.create(context);
  private final CudaMemory memory = CudaMemory.unlimited(context);
  private final DeviceBlock device = memory.acquire("metadata", 256);
  private final MetadataStaging staging = new MetadataStaging(context, 256, 2);

  @AfterEach
  void everythingIsClosed() {
    staging.close();
    staging.close();
    device.close();
    memory.close();
    stream.close();
    context.close();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  private Seq<String> callsOf(Runnable step) {
    int before = fake.calls().size();
    step.run();
    return fake.calls().drop(before);
  }

  @Test
  void aStepIsOneCopyAndOneMark() {
    Slot slot = staging.take();

    assertThat(callsOf(() -> slot.upload(stream, device.segment())))
        .containsExactly("cuMemcpyHtoDAsync_v2", "cuEventRecord");
  }

  @Test
  void whatWasWrittenArrives() {
    Slot slot = staging.take();
    slot.host().setAtIndex(ValueLayout.JAVA_INT, 3, 42);
    slot.upload(stream, device.segment().asSlice(0, 16));

    try (Arena arena = Arena.ofConfined()) {
      MemorySegment host = arena.allocate(16);
      stream.copyToHost(device.segment(), host);
      stream.synchronize();
      assertThat(host.getAtIndex(ValueLayout.JAVA_INT, 3)).isEqualTo(42);
    }
  }

  @Test
  void slotsTakeTurns() {
    Slot first = staging.take();
    Slot second = staging.take();

    assertThat(second).isNotSameAs(first);
    assertThat(staging.take()).isSameAs(first);
  }

  @Test
  void aSlotThatTheDeviceMayStillReadIsWaitedFor() {
    Slot first = staging.take();
    first.upload(stream, device.segment());
    assertThat(callsOf(staging::take)).isEmpty(); // the other slot is free

    assertThat(callsOf(staging::take)).containsExactly("cuCtxSetCurrent", "cuEventSynchronize");
  }

  @Test
  void aSlotThatWasNotUploadedIsNotWaitedFor() {
    staging.take();
    staging.take();

    assertThat(callsOf(staging::take)).isEmpty();
  }

  @Test
  void aSlotWhoseMarkFailedIsStillWaitedFor() {
    Slot slot = staging.take();
    fake.fail("cuEventRecord", 1, 401);
    assertThatThrownBy(() -> slot.upload(stream, device.segment()))
        .satisfies(refused(ErrorCode.NATIVE_FAILED, "cuEventRecord"));
    staging.take();

    assertThat(callsOf(staging::take)).containsExactly("cuCtxSetCurrent", "cuCtxSynchronize");
  }

  @Test
  void moreThanASlotHoldsIsRefused() {
    try (DeviceBlock large = memory.acquire("large", 512)) {
      assertThatThrownBy(() -> staging.take().upload(stream, large.segment()))
          .satisfies(refused(ErrorCode.MEMORY_TOO_SMALL, "256 bytes", "512 bytes"));
    }
  }

  @Test
  void noSlotsAndNoBytesAreRefused() {
    assertThatThrownBy(() -> new MetadataStaging(context, 0, 2))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER, "2 slots of 0 bytes"));
    assertThatThrownBy(() -> new MetadataStaging(context, 64, 0))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER, "0 slots"));
  }

  @Test
  void aClosedStagingIsRefused() {
    staging.close();

    assertThatThrownBy(staging::take).satisfies(refused(ErrorCode.CLOSED));
  }
}

package bifocal.cuda.driver;

import static bifocal.cuda.fake.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.ErrorCode;
import bifocal.cuda.fake.FakeCuda;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** Copies and fills reach what they say, and are refused before the driver where they cannot. */
final class CudaStreamTest {
  private final FakeCuda fake = FakeCuda.resetOrSkip();
  private final CudaContext context = CudaContext.primary(fake.driver(), 0);
  private final CudaStream stream = CudaStream.create(context);
  private final DeviceAllocation a = DeviceAllocation.allocate(context, "a", 64);
  private final DeviceAllocation b = DeviceAllocation.allocate(context, "b", 64);
  private final Arena arena = Arena.ofConfined();

  @AfterEach
  void everythingIsClosed() {
    arena.close();
    a.close();
    b.close();
    stream.close();
    context.close();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  private byte[] read(MemorySegment device) {
    MemorySegment host = arena.allocate(device.byteSize());
    stream.copyToHost(device, host);
    stream.synchronize();
    return host.toArray(ValueLayout.JAVA_BYTE);
  }

  private MemorySegment counting() {
    MemorySegment host = arena.allocate(64);
    for (int i = 0; i < 64; i++) {
      host.set(ValueLayout.JAVA_BYTE, i, (byte) i);
    }
    return host;
  }

  @Test
  void bytesComeBackFromTheDevice() {
    MemorySegment host = counting();

    stream.copyToDevice(host, a.segment());

    assertThat(read(a.segment())).isEqualTo(host.toArray(ValueLayout.JAVA_BYTE));
  }

  @Test
  void aCopyMovesTheRangeItNamesAndNoMore() {
    stream.fill(a.segment(), (byte) 9);
    stream.fill(b.segment(), (byte) 0);
    stream.copyToDevice(counting(), 4, a.segment(), 8, 3);
    stream.copyOnDevice(a.segment(), 7, b.segment(), 1, 5);
    MemorySegment host = arena.allocate(4);
    stream.copyToHost(b.segment(), 0, host, 1, 3);

    assertThat(read(b.segment().asSlice(0, 7))).containsExactly(0, 9, 4, 5, 6, 9, 0);
    assertThat(host.toArray(ValueLayout.JAVA_BYTE)).containsExactly(0, 0, 9, 4);
  }

  @Test
  void wordsFillWholeWords() {
    stream.fill(a.segment(), (byte) 0);
    stream.fillWords(a.segment().asSlice(4, 4), 0x01020304);

    assertThat(read(a.segment().asSlice(0, 9))).containsExactly(0, 0, 0, 0, 4, 3, 2, 1, 0);
  }

  @Test
  void nothingIsCopiedOrFilledWithoutACall() {
    int before = fake.calls().size();
    MemorySegment nothing = a.segment().asSlice(64);

    stream.fill(nothing, (byte) 1);
    stream.fillWords(nothing, 1);
    stream.copyOnDevice(nothing, 0, b.segment(), 0, 0);
    stream.copyToDevice(arena.allocate(0), nothing);
    stream.copyToHost(nothing, arena.allocate(0));

    assertThat(fake.calls().size()).isEqualTo(before);
  }

  @Test
  void whatDoesNotFitIsRefusedBeforeTheDriverIsCalled() {
    int before = fake.calls().size();
    MemorySegment host = arena.allocate(65);

    assertThatThrownBy(() -> stream.copyToDevice(host, a.segment()))
        .satisfies(refused(ErrorCode.MEMORY_TOO_SMALL, "64 bytes", "65 bytes"));
    assertThatThrownBy(() -> stream.copyToHost(a.segment(), host))
        .satisfies(refused(ErrorCode.MEMORY_TOO_SMALL));
    assertThatThrownBy(() -> stream.copyToHost(a.segment(), 0, host, 60, 6))
        .satisfies(refused(ErrorCode.MEMORY_TOO_SMALL, "host memory"));
    assertThatThrownBy(() -> stream.copyOnDevice(a.segment(), 60, b.segment(), 0, 5))
        .satisfies(refused(ErrorCode.MEMORY_TOO_SMALL, "source", "5 bytes from byte 60"));
    assertThatThrownBy(() -> stream.copyOnDevice(a.segment(), 0, b.segment(), -1, 5))
        .satisfies(refused(ErrorCode.MEMORY_TOO_SMALL, "target"));
    assertThatThrownBy(() -> stream.copyOnDevice(a.segment(), 0, b.segment(), 0, -1))
        .satisfies(refused(ErrorCode.MEMORY_TOO_SMALL));
    assertThat(fake.calls().size()).isEqualTo(before);
  }

  @Test
  void wordsThatAreNotWholeOrNotAlignedAreRefused() {
    assertThatThrownBy(() -> stream.fillWords(a.segment().asSlice(0, 6), 1))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER, "6 bytes"));
    assertThatThrownBy(() -> stream.fillWords(a.segment().asSlice(2, 8), 1))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER));
  }

  @Test
  void memoryOfTheJavaHeapIsRefused() {
    assertThatThrownBy(() -> stream.copyToDevice(MemorySegment.ofArray(new int[4]), a.segment()))
        .satisfies(refused(ErrorCode.DEVICE_MISMATCH, "Java heap", "Arena"));
  }

  @Test
  void deviceMemoryInPlaceOfHostMemoryIsRefused() {
    assertThatThrownBy(() -> stream.copyToHost(a.segment(), b.segment()))
        .satisfies(refused(ErrorCode.DEVICE_MISMATCH, "cannot read"));
  }

  @Test
  void freedDeviceMemoryIsRefused() {
    DeviceAllocation gone = DeviceAllocation.allocate(context, "gone", 64);
    MemorySegment segment = gone.segment();
    gone.close();

    assertThatThrownBy(() -> stream.fill(segment, (byte) 1))
        .satisfies(refused(ErrorCode.CLOSED, "released"));
  }

  @Test
  void freedHostMemoryIsRefused() {
    Arena brief = Arena.ofConfined();
    MemorySegment gone = brief.allocate(64);
    brief.close();

    assertThatThrownBy(() -> stream.copyToDevice(gone, a.segment()))
        .satisfies(refused(ErrorCode.CLOSED, "host memory", "released"));
  }

  @Test
  void aBusyDeviceIsNotIdle() {
    fake.busy(true);
    assertThat(stream.idle()).isFalse();
    fake.busy(false);
    assertThat(stream.idle()).isTrue();
  }

  @Test
  void anEventIsPassedWhenTheDeviceIs() {
    try (CudaEvent event = CudaEvent.create(context)) {
      fake.busy(true);
      assertThat(event.done()).isTrue(); // never recorded
      event.record(stream);
      assertThat(event.done()).isFalse();
      fake.busy(false);
      assertThat(event.done()).isTrue();
    }
  }

  @Test
  void theHostsEventIsWaitedForAndNeverDestroyed() {
    try (CudaEvent theirs = CudaEvent.create(context)) {
      theirs.record(stream);
      CudaEvent adopted = CudaEvent.adopt(context, theirs.handle());
      stream.waitFor(adopted);
      adopted.synchronize();
      adopted.close();

      assertThat(theirs.done()).isTrue();
    }
    assertThatThrownBy(() -> CudaEvent.adopt(context, 0))
        .satisfies(refused(ErrorCode.INVALID_PARAMETER, "adopted CUDA event"));
  }

  @Test
  void timeIsMeasuredFromTheEarlierEvent() {
    try (CudaEvent begin = CudaEvent.timed(context);
        CudaEvent between = CudaEvent.timed(context);
        CudaEvent end = CudaEvent.timed(context)) {
      begin.record(stream);
      between.record(stream);
      end.record(stream);

      assertThat(end.millisecondsSince(begin)).isEqualTo(1f);
      assertThat(end.millisecondsSince(between)).isEqualTo(0.5f);
    }
  }

  @Test
  void aClosedStreamAndAClosedEventAreRefused() {
    CudaStream gone = CudaStream.create(context);
    gone.close();
    gone.close();
    CudaEvent event = CudaEvent.create(context);
    event.close();
    event.close();

    assertThatThrownBy(gone::synchronize).satisfies(refused(ErrorCode.CLOSED, "stream"));
    assertThatThrownBy(() -> event.record(stream)).satisfies(refused(ErrorCode.CLOSED, "event"));
    assertThatThrownBy(() -> stream.waitFor(event)).satisfies(refused(ErrorCode.CLOSED, "event"));
  }
}

package bifocal.cuda;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.device.Platform;
import bifocal.core.engine.DeviceSession;
import bifocal.core.engine.DeviceSessions;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.SyntheticPack;
import bifocal.cuda.triton.TritonDevice;
import bifocal.cuda.triton.TritonHost;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** A device's memory and launches for programs without an engine. */
class CudaSessionsTest {
  private static final int ILLEGAL_STATE = 401;
  private static final int ILLEGAL_ADDRESS = 700;

  @Test
  void platformIsFoundAsAService() {
    assertThat(DeviceSessions.of(Platform.CUDA)).isInstanceOf(CudaSessions.class);
    assertThatThrownBy(() -> DeviceSessions.of(Platform.XPU)).hasMessageContaining("xpu");
  }

  @Test
  void withoutADeviceTheReasonIsThrown() {
    BifocalException why = BifocalException.of(ErrorCode.NATIVE_MISSING, "no driver");

    assertThatThrownBy(() -> new CudaSessions(TritonHost.without(why)).open(AttentionObserver.NONE))
        .isSameAs(why);
  }

  @Test
  void bytesComeBackAndNothingIsLeft(@TempDir Path packs) {
    FakeCuda fake = FakeCuda.resetOrSkip();
    SyntheticPack.in(packs).write();
    try (CudaContext context = CudaContext.primary(fake.driver(), 0);
        Arena arena = Arena.ofConfined()) {
      KernelPack pack = KernelPack.open(packs, context.device().capability()).get();
      try (TritonDevice device = TritonDevice.of(context, pack)) {
        DeviceSession session =
            new CudaSessions(TritonHost.with(device)).open(AttentionObserver.NONE);
        MemorySegment sent = arena.allocateFrom(ValueLayout.JAVA_INT, 3, 1, 4, 1);
        MemorySegment received = arena.allocate(16);
        MemorySegment memory = session.allocate("numbers", 16);
        session.fill(memory, (byte) 9);
        session.upload(sent.asSlice(0, 12), memory);
        session.download(memory, received);

        assertThat(received.toArray(ValueLayout.JAVA_INT)).containsExactly(3, 1, 4, 0x09090909);
        assertThat(session.profile().simulated()).isFalse();
        session.close();
        assertThat(memory.scope().isAlive()).isFalse();
      }
    }
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  /** A session that uses everything it has, in the open context of a device. */
  private static void everything(FakeCuda fake, Path packs) {
    try (CudaContext context = CudaContext.primary(fake.driver(), 0);
        Arena arena = Arena.ofConfined();
        TritonDevice device =
            TritonDevice.of(context, KernelPack.open(packs, context.device().capability()).get());
        DeviceSession session =
            new CudaSessions(TritonHost.with(device)).open(AttentionObserver.NONE)) {
      MemorySegment host = arena.allocate(16);
      MemorySegment memory = session.allocate("numbers", 16);
      session.allocate("others", 16);
      session.fill(memory, (byte) 9);
      session.zeroing().zero(memory);
      session.upload(host, memory);
      session.download(memory, host);
      session.synchronize();
    }
  }

  /** Every call fails once: the failure is typed, and nothing is left. */
  @TestFactory
  Stream<DynamicTest> aFailedCallIsTypedAndNothingLeaks(@TempDir Path packs) {
    FakeCuda fake = FakeCuda.resetOrSkip();
    SyntheticPack.in(packs).write();
    fake.driver();
    fake.reset();
    everything(fake, packs);
    assertThat(fake.live().toJavaMap()).isEmpty();
    return fake.calls()
        .zipWithIndex()
        .map(call -> dynamicTest(call._2 + " " + call._1, () -> failsCleanly(fake, packs, call._2)))
        .toJavaStream();
  }

  private static void failsCleanly(FakeCuda fake, Path packs, int index) {
    fake.reset();
    fake.failAt(index, ILLEGAL_STATE);

    Throwable thrown = catchThrowable(() -> everything(fake, packs));

    assertThat(thrown).isInstanceOf(BifocalException.class);
    assertThat(fake.live().toJavaMap()).as("alive after %s", thrown.getMessage()).isEmpty();
  }

  @Test
  void aFaultInASessionIsWhatItsEndSays(@TempDir Path packs) {
    FakeCuda fake = FakeCuda.resetOrSkip();
    SyntheticPack.in(packs).write();
    fake.driver();
    fake.reset();
    fake.fail("cuStreamSynchronize", 2, ILLEGAL_ADDRESS);

    assertThatThrownBy(() -> everything(fake, packs))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DEVICE_LOST));
  }
}

package bifocal.core.backend;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;

import bifocal.core.device.Device;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;

class HostLaunchContextTest {

  @Test
  void itBelongsToTheThreadThatMadeIt() throws InterruptedException {
    HostLaunchContext mine = new HostLaunchContext(AttentionObserver.NONE);
    assertThatCode(mine::requireOwner).doesNotThrowAnyException();
    AtomicReference<HostLaunchContext> others = new AtomicReference<>();
    Thread.ofPlatform()
        .start(() -> others.set(new HostLaunchContext(AttentionObserver.NONE)))
        .join();
    assertRefused(ErrorCode.WRONG_THREAD, () -> others.get().requireOwner());
  }

  @Test
  void itCopiesHostMemoryAtOnce() {
    HostLaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);
    byte[] to = new byte[6];
    launch.copy(MemorySegment.ofArray(new byte[] {1, 2, 3, 4}), 1, MemorySegment.ofArray(to), 3, 2);
    assertThat(to).containsExactly(0, 0, 0, 2, 3, 0);
    assertThat(launch.device()).isEqualTo(Device.HOST);
    assertThat(launch.stream()).isZero();
    assertThat(launch.observer().enabled()).isFalse();
  }
}

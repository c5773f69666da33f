package bifocal.core.lifecycle;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class InFlightTest {
  private final InFlight calls = new InFlight("the layer");

  @Test
  void nothingIsClosedWhileACallIsUnderWay() {
    calls.enter();
    calls.enter();
    calls.leave();
    assertRefused(ErrorCode.IN_USE, calls::close).contains("the layer", "let the step end");
    calls.enter();
    calls.leave();
    calls.leave();
    assertThat(calls.close()).isTrue();
  }

  @Test
  void noCallBeginsAfterItWasClosed() {
    assertThat(calls.close()).isTrue();
    assertRefused(ErrorCode.CLOSED, calls::enter);
    assertThat(calls.close()).isFalse();
    assertRefused(ErrorCode.CLOSED, calls::enter);
  }

  @Test
  void aCallIsNeverUnderWayOnceItIsClosed() throws InterruptedException {
    for (int round = 0; round < 200; round++) {
      InFlight raced = new InFlight("raced");
      AtomicInteger inside = new AtomicInteger();
      AtomicBoolean closed = new AtomicBoolean();
      AtomicInteger late = new AtomicInteger();
      List<Thread> callers = new ArrayList<>();
      for (int t = 0; t < 3; t++) {
        callers.add(Thread.ofVirtual().start(() -> call(raced, inside, closed, late)));
      }
      while (!closed.get()) {
        try {
          assertThat(raced.close()).as("closed in round %d, not passed over", round).isTrue();
          closed.set(true);
        } catch (RuntimeException inUse) {
          Thread.yield();
        }
      }
      assertThat(inside).as("round %d", round).hasValue(0);
      for (Thread caller : callers) {
        caller.join();
      }
      assertThat(late).hasValue(0);
    }
  }

  private static void call(
      InFlight raced, AtomicInteger inside, AtomicBoolean closed, AtomicInteger late) {
    for (int i = 0; i < 100; i++) {
      try {
        raced.enter();
      } catch (RuntimeException over) {
        return;
      }
      inside.incrementAndGet();
      if (closed.get()) {
        late.incrementAndGet();
      }
      inside.decrementAndGet();
      raced.leave();
    }
  }
}

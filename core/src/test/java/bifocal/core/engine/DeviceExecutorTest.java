package bifocal.core.engine;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.LaunchContext;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(20)
class DeviceExecutorTest {
  private final List<Thread> released = new ArrayList<>();
  private final DeviceExecutor<HostLaunchContext> device =
      DeviceExecutor.start(
          "attention",
          () -> new HostLaunchContext(AttentionObserver.NONE),
          launch -> released.add(Thread.currentThread()));

  @AfterEach
  void close() {
    device.close();
  }

  @Test
  void everyStepRunsOnTheOneThreadThatMadeTheContext() {
    Thread first = device.run(DeviceExecutorTest::ownedBy);
    Thread second = device.run(DeviceExecutorTest::ownedBy);
    assertThat(first).isSameAs(second).isNotSameAs(Thread.currentThread());
    assertThat(first.getName()).isEqualTo("attention");
  }

  @Test
  void theContextRefusesEveryOtherThread() {
    HostLaunchContext launch = device.run(context -> context);
    assertRefused(ErrorCode.WRONG_THREAD, launch::requireOwner).contains("attention");
  }

  @Test
  void stepsOfManyThreadsRunOneAfterAnother() throws InterruptedException {
    AtomicInteger inside = new AtomicInteger();
    AtomicInteger most = new AtomicInteger();
    AtomicInteger done = new AtomicInteger();
    List<Thread> hosts = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      hosts.add(
          Thread.ofPlatform()
              .start(
                  () -> {
                    for (int step = 0; step < 50; step++) {
                      device.run(
                          launch -> {
                            most.accumulateAndGet(inside.incrementAndGet(), Math::max);
                            inside.decrementAndGet();
                            return done.incrementAndGet();
                          });
                    }
                  }));
    }
    for (Thread host : hosts) {
      host.join();
    }
    assertThat(done).hasValue(200);
    assertThat(most).hasValue(1);
  }

  @Test
  void aStepInsideAStepRunsAtOnce() {
    String result = device.run(outer -> device.run(inner -> inner == outer ? "same" : "other"));
    assertThat(result).isEqualTo("same");
  }

  @Test
  void whatAStepThrowsIsThrownToItsCallerAndTheThreadLivesOn() {
    BifocalException failure = BifocalException.of(ErrorCode.NATIVE_FAILED, "a kernel failed");
    assertThatThrownBy(
            () ->
                device.run(
                    launch -> {
                      throw failure;
                    }))
        .isSameAs(failure);
    assertThatThrownBy(
            () ->
                device.run(
                    launch -> {
                      throw new StackOverflowError("deep");
                    }))
        .isInstanceOf(StackOverflowError.class);
    assertThat(device.<Integer>run(launch -> 7)).isEqualTo(7);
  }

  @Test
  void anInterruptDoesNotTearAStep() throws InterruptedException {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch mayEnd = new CountDownLatch(1);
    AtomicReference<String> seen = new AtomicReference<>("nothing");
    Thread host =
        Thread.ofPlatform()
            .start(
                () -> {
                  String result =
                      device.run(
                          launch -> {
                            running.countDown();
                            await(mayEnd);
                            return "whole";
                          });
                  boolean interrupted = Thread.currentThread().isInterrupted();
                  seen.set(result + (interrupted ? ", interrupted" : ""));
                });
    running.await();
    host.interrupt();
    host.join(50);
    assertThat(host.isAlive()).isTrue();
    mayEnd.countDown();
    host.join();
    assertThat(seen).hasValue("whole, interrupted");
  }

  @Test
  void closingReleasesTheContextOnItsThreadOnce() {
    Thread owner = device.run(DeviceExecutorTest::ownedBy);
    device.close();
    device.close();
    assertThat(released).containsExactly(owner);
    assertRefused(ErrorCode.CLOSED, () -> device.run(launch -> 1));
  }

  @Test
  void closingWaitsForTheStepThatRuns() throws InterruptedException {
    CountDownLatch running = new CountDownLatch(1);
    CountDownLatch mayEnd = new CountDownLatch(1);
    List<String> order = Collections.synchronizedList(new ArrayList<>());
    Thread host =
        Thread.ofPlatform()
            .start(
                () ->
                    device.run(
                        launch -> {
                          running.countDown();
                          await(mayEnd);
                          return order.add("step");
                        }));
    running.await();
    Thread closer =
        Thread.ofPlatform()
            .start(
                () -> {
                  device.close();
                  order.add("closed");
                });
    closer.join(50);
    assertThat(order).isEmpty();
    mayEnd.countDown();
    closer.join();
    host.join();
    assertThat(order).containsExactly("step", "closed");
  }

  @Test
  void aStepCannotCloseTheThreadItRunsOn() {
    assertRefused(
        ErrorCode.IN_USE,
        () ->
            device.run(
                launch -> {
                  device.close();
                  return 1;
                }));
    assertThat(device.<Integer>run(launch -> 7)).isEqualTo(7);
  }

  @Test
  void aContextThatCannotBeMadeEndsTheThread() throws InterruptedException {
    AtomicReference<Thread> thread = new AtomicReference<>();
    assertRefused(
        ErrorCode.NATIVE_MISSING,
        () ->
            DeviceExecutor.start(
                "broken",
                () -> {
                  thread.set(Thread.currentThread());
                  throw BifocalException.of(ErrorCode.NATIVE_MISSING, "no driver");
                }));
    thread.get().join(10_000);
    assertThat(thread.get().isAlive()).isFalse();
  }

  private static Thread ownedBy(LaunchContext launch) {
    launch.requireOwner();
    return Thread.currentThread();
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError("the step was interrupted", e);
    }
  }
}

package bifocal.core.engine;

import bifocal.core.backend.LaunchContext;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * A thread that owns a device, for hosts that have none. Whole steps are handed to it, from any
 * thread, and run one after another; what they use refuses every other thread with {@code
 * WRONG_THREAD}.
 *
 * @param <L> the launch context that lives on the thread
 */
public final class DeviceExecutor<L extends LaunchContext> implements AutoCloseable {
  private final ExecutorService thread;
  private final Thread owner;
  private final L launch;
  private final Consumer<L> release;

  private DeviceExecutor(ExecutorService thread, Thread owner, L launch, Consumer<L> release) {
    this.thread = thread;
    this.owner = owner;
    this.launch = launch;
    this.release = release;
  }

  /** Starts a thread whose context needs no release. */
  public static <L extends LaunchContext> DeviceExecutor<L> start(
      String name, Supplier<L> context) {
    return start(name, context, launch -> {});
  }

  /**
   * Starts the owning thread.
   *
   * @param name of the thread
   * @param context makes the launch context, on the thread
   * @param release releases the context, on the thread, when the executor is closed
   */
  public static <L extends LaunchContext> DeviceExecutor<L> start(
      String name, Supplier<L> context, Consumer<L> release) {
    ExecutorService thread =
        Executors.newSingleThreadExecutor(Thread.ofPlatform().name(name).daemon().factory());
    try {
      Thread owner = await(thread.submit(Thread::currentThread));
      return new DeviceExecutor<>(thread, owner, await(thread.submit(context::get)), release);
    } catch (RuntimeException | Error e) {
      thread.shutdownNow();
      throw e;
    }
  }

  /**
   * Runs a step on the owning thread and waits for it; a step inside a step runs at once. What the
   * step throws is thrown here. An interrupt does not tear the step: the caller still waits, and
   * stays interrupted.
   *
   * @throws BifocalException {@code CLOSED}
   */
  public <T> T run(Function<? super L, ? extends T> step) {
    if (Thread.currentThread() == owner) {
      return step.apply(launch);
    }
    Future<T> result;
    try {
      result = thread.submit(() -> step.apply(launch));
    } catch (RejectedExecutionException e) {
      throw BifocalException.of(ErrorCode.CLOSED, "the device's thread was closed").causedBy(e);
    }
    return await(result);
  }

  /**
   * Lets the accepted steps end, releases the context and ends the thread; closing twice is
   * harmless.
   *
   * @throws BifocalException {@code IN_USE} from inside a step
   */
  @Override
  public void close() {
    requireOutside();
    try {
      await(thread.submit(() -> release.accept(launch)));
    } catch (RejectedExecutionException e) {
      return;
    } finally {
      thread.close();
    }
  }

  /**
   * Requires a caller that is no step.
   *
   * @throws BifocalException {@code IN_USE}
   */
  void requireOutside() {
    if (Thread.currentThread() == owner) {
      throw BifocalException.of(
          ErrorCode.IN_USE, "the device's thread was closed by a step that runs on it");
    }
  }

  @SuppressWarnings("NullAway") // a step may return whatever its caller expects
  private static <T> T await(Future<T> result) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          return result.get();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } catch (ExecutionException e) {
      throw thrownByStep(e);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private static RuntimeException thrownByStep(ExecutionException e) {
    return switch (e.getCause()) {
      case Error error -> throw error;
      case RuntimeException failure -> failure;
      case null, default -> BifocalException.of(ErrorCode.INTERNAL, "a step failed").causedBy(e);
    };
  }
}

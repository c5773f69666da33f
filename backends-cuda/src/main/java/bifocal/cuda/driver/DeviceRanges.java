package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Makes segments of device addresses. Each is confined to a thread that nobody else runs on, so
 * that reading or writing one on the host is refused by the JVM instead of ending it.
 */
final class DeviceRanges implements AutoCloseable {
  private final ExecutorService keeper =
      Executors.newSingleThreadExecutor(
          Thread.ofPlatform().name("bifocal-device-ranges").daemon().factory());

  @SuppressWarnings("MustBeClosedChecker") // the range closes its arena
  DeviceRange map(CudaContext context, long address, long bytes) {
    return onKeeper(
        () -> {
          Arena arena = Arena.ofConfined();
          return new DeviceRange(context, arena, CudaDriver.segment(address, bytes, arena));
        });
  }

  void unmap(Arena arena) {
    onKeeper(
        () -> {
          arena.close();
          return arena;
        });
  }

  @Override
  public void close() {
    keeper.shutdown();
  }

  private <T> T onKeeper(Callable<T> work) {
    Future<T> result = keeper.submit(work);
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
      throw BifocalException.of(ErrorCode.INTERNAL, "a segment of device memory").causedBy(e);
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}

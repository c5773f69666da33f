package bifocal.cpu.thread;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Work in pieces that {@link CpuThreads} hands out one by one, the first piece first. A job may be
 * run again once it is over; it is never run twice at once.
 */
public abstract class CpuJob {
  final AtomicInteger helpers = new AtomicInteger();
  private final AtomicLong next = new AtomicLong();
  private final AtomicReference<@Nullable Throwable> failure = new AtomicReference<>();
  private volatile long pieces;
  private volatile int workers;

  /**
   * Does one piece.
   *
   * @param worker number of the thread among those that work on this job, from 0; it never works on
   *     two pieces of the job at once
   * @param piece index of the piece
   */
  protected abstract void run(int worker, long piece);

  final void begin(long count, int maxWorkers) {
    failure.set(null);
    pieces = count;
    workers = maxWorkers;
    next.set(0);
  }

  /** Takes pieces until there is none. */
  final void work(int worker) {
    if (worker >= workers) {
      return;
    }
    for (long piece = next.getAndIncrement(); piece < pieces; piece = next.getAndIncrement()) {
      try {
        run(worker, piece);
      } catch (Throwable thrown) {
        failure.compareAndSet(null, thrown);
        next.set(pieces);
      }
    }
  }

  final boolean hasPieces() {
    return next.get() < pieces;
  }

  final @Nullable Throwable failure() {
    return failure.get();
  }
}

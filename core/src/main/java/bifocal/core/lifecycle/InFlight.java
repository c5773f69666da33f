package bifocal.core.lifecycle;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Counts the calls under way in something that can be closed, so that it is closed only while none
 * is. Safe for any thread; it allocates nothing.
 */
public final class InFlight {
  /** Far enough below zero that calls which come too late stay below it. */
  private static final int CLOSED = Integer.MIN_VALUE / 2;

  private final String owner;
  private final AtomicInteger calls = new AtomicInteger();

  /**
   * Nothing is under way.
   *
   * @param owner what is closed, as refusals call it
   */
  public InFlight(String owner) {
    this.owner = owner;
  }

  /**
   * A call begins; {@link #leave} ends it.
   *
   * @throws BifocalException {@code CLOSED}
   */
  public void enter() {
    if (calls.incrementAndGet() <= 0) {
      calls.decrementAndGet();
      throw BifocalException.of(ErrorCode.CLOSED, owner + " was closed");
    }
  }

  /** A call ends. */
  public void leave() {
    calls.decrementAndGet();
  }

  /**
   * Lets no further call begin.
   *
   * @return whether it was open until now
   * @throws BifocalException {@code IN_USE} while a call is under way; nothing is changed
   */
  public boolean close() {
    while (!calls.compareAndSet(0, CLOSED)) {
      int seen = calls.get();
      if (seen < 0) {
        return false;
      }
      if (seen > 0) {
        throw BifocalException.of(ErrorCode.IN_USE, owner + " is closed while a step runs in it")
            .withRemedy("let the step end, then close again");
      }
      // A call ended between the two looks: it is open, and nothing is under way.
    }
    return true;
  }
}

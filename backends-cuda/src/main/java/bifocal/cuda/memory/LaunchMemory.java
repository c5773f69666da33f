package bifocal.cuda.memory;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;

/** Host memory of prepared launches, for any thread, until it is closed. */
public final class LaunchMemory implements AutoCloseable {
  private final String owner;
  private final Arena arena;

  /**
   * Memory without anything in it.
   *
   * @param owner how messages call whoever closes it
   */
  @SuppressWarnings("MustBeClosedChecker") // close() closes it
  public LaunchMemory(String owner) {
    this.owner = owner;
    this.arena = Arena.ofShared();
  }

  /** What is allocated from it lives until this is closed. */
  public Arena arena() {
    return arena;
  }

  public boolean isOpen() {
    return arena.scope().isAlive();
  }

  /**
   * Requires that it was not closed.
   *
   * @throws BifocalException {@code CLOSED}
   */
  public void requireOpen() {
    if (!isOpen()) {
      throw BifocalException.of(ErrorCode.CLOSED, owner + " was closed");
    }
  }

  /** Releases the memory; closing twice is harmless. */
  @Override
  public void close() {
    if (isOpen()) {
      arena.close();
    }
  }
}

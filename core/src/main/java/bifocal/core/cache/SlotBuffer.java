package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Host memory for the slots of one step's tokens, used again in the next step. It belongs to
 * whoever schedules, and is released when closed.
 */
public final class SlotBuffer implements AutoCloseable {
  private final Arena arena;
  private final MemorySegment memory;

  private SlotBuffer(Arena arena, int maxTokens) {
    this.arena = arena;
    this.memory = arena.allocate((long) maxTokens * Long.BYTES, Long.BYTES);
  }

  /**
   * Memory for at most so many tokens.
   *
   * @throws BifocalException {@code INVALID_PARAMETER}
   */
  @SuppressWarnings("MustBeClosedChecker") // the buffer closes its arena
  public static SlotBuffer allocate(int maxTokens) {
    if (maxTokens < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "tokens of a slot buffer", maxTokens, "at least 1");
    }
    return new SlotBuffer(Arena.ofShared(), maxTokens);
  }

  /** All of the memory, int64 in native byte order. */
  public MemorySegment memory() {
    return memory;
  }

  /**
   * The slots of a step of so many tokens, int64 {@code [tokens]}.
   *
   * @throws BifocalException {@code MEMORY_TOO_SMALL}
   */
  public TensorView tensor(int tokens) {
    return TensorView.ofHost(memory, DType.INT64, tokens);
  }

  /** Releases the memory; closing twice is harmless. */
  @Override
  public void close() {
    if (memory.scope().isAlive()) {
      arena.close();
    }
  }
}

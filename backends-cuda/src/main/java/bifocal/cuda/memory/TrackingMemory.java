package bifocal.cuda.memory;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * The twin of a device memory for tests: it takes a second close of a block for the fault that it
 * is, and at its own end names every block that nobody closed, with the place that acquired it.
 *
 * <p>Safe for any thread.
 */
public final class TrackingMemory implements DeviceMemory {
  private final DeviceMemory memory;
  private final List<Block> open = new ArrayList<>();

  /** Watches a memory, which the twin closes with itself. */
  public TrackingMemory(DeviceMemory memory) {
    this.memory = memory;
  }

  @Override
  public synchronized DeviceBlock acquire(String name, long bytes) {
    Block block = new Block(memory.acquire(name, bytes));
    open.add(block);
    return block;
  }

  @Override
  public long available() {
    return memory.available();
  }

  /**
   * Ends the memory.
   *
   * @throws BifocalException {@code IN_USE} naming the blocks that were never closed; where each
   *     was acquired is suppressed in it. They are closed, so that the next test finds no trace.
   */
  @Override
  public synchronized void close() {
    List<Block> leaks = List.copyOf(open);
    leaks.forEach(DeviceBlock::close);
    memory.close();
    if (!leaks.isEmpty()) {
      BifocalException failure =
          BifocalException.of(
              ErrorCode.IN_USE,
              "device memory that was never given back",
              String.join(", ", leaks.stream().map(DeviceBlock::name).toList()),
              "none");
      leaks.forEach(block -> failure.addSuppressed(block.acquired));
      throw failure;
    }
  }

  private synchronized boolean forget(Block block) {
    return open.remove(block);
  }

  private final class Block implements DeviceBlock {
    private final DeviceBlock block;
    private final BifocalException acquired;

    Block(DeviceBlock block) {
      this.block = block;
      this.acquired = BifocalException.of(ErrorCode.IN_USE, block.name() + " was acquired here");
    }

    @Override
    public String name() {
      return block.name();
    }

    @Override
    public MemorySegment segment() {
      return block.segment();
    }

    /**
     * Gives the memory back.
     *
     * @throws BifocalException {@code CLOSED} the second time
     */
    @Override
    public void close() {
      if (!forget(this)) {
        throw BifocalException.of(
            ErrorCode.CLOSED, "device memory was given back twice", name(), "once");
      }
      block.close();
    }
  }
}

package bifocal.examples.cache;

import java.lang.foreign.MemorySegment;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;

/**
 * The host's own block manager. Block 0 is the null block and is never given away; what was freed
 * last is given first, so the blocks of a sequence lie anywhere.
 */
final class HostBlocks {
  private final MemorySegment memory;
  private final long bytes;
  private final int tokens;
  private final Deque<Integer> free = new ArrayDeque<>();

  /**
   * @param memory all blocks, one behind the other
   * @param bytes of a block, all layers included
   * @param tokens of a block
   */
  HostBlocks(MemorySegment memory, long bytes, int tokens) {
    this.memory = memory;
    this.bytes = bytes;
    this.tokens = tokens;
    for (int block = 1; block < memory.byteSize() / bytes; block++) {
      free.add(block);
    }
  }

  /** One sequence: its blocks in order, and how many tokens they hold. */
  final class Sequence {
    private final List<Integer> blocks = new ArrayList<>();
    private int length;

    /** Makes room for more tokens; a block is cleared, since kernels read whole blocks. */
    void append(int count) {
      length += count;
      while (blocks.size() * tokens < length) {
        int block = free.pop();
        memory.asSlice(block * bytes, bytes).fill((byte) 0);
        blocks.add(block);
      }
    }

    /** Gives the blocks back. */
    void end() {
      blocks.forEach(free::push);
      blocks.clear();
      length = 0;
    }

    int length() {
      return length;
    }

    List<Integer> blocks() {
      return List.copyOf(blocks);
    }

    /** Where the token at a position lies. */
    long slot(int position) {
      return (long) blocks.get(position / tokens) * tokens + position % tokens;
    }
  }
}

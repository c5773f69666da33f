package bifocal.cpu.attention;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * One step's batch as work items, in memory leased from the step's workspace.
 *
 * @param lease the leased memory, headed by the plan's stamp
 * @param stamp number of this plan
 * @param requests live requests
 * @param tokens rows of q that the requests reach
 * @param largestBlock largest block that is looked up, -1 when none is
 * @param table where the blocks of cached keys are listed
 * @param packed where keys that are in no cache go, for layers that may run without one
 * @param packedMemory scratch for those keys
 * @param keyFirst address of each query token's first visible key, 0 when windows say it
 * @param keyLast address of each query token's last visible key, or 0
 * @param partials memory of partial results
 * @param partialRows rows of partial results
 * @param items number of work items
 * @param merges address of the merges
 * @param mergeCount number of merges
 * @param workers threads that are worth their while
 * @param job runs the items
 */
record StepPlan(
    MemorySegment lease,
    long stamp,
    int requests,
    int tokens,
    int largestBlock,
    BlockTable table,
    PackedKeys packed,
    MemorySegment packedMemory,
    long keyFirst,
    long keyLast,
    MemorySegment partials,
    long partialRows,
    long items,
    long merges,
    long mergeCount,
    int workers,
    AttendJob job)
    implements CpuAttentionMetadata {

  /**
   * A block table in leased memory.
   *
   * @param address first entry
   * @param stride entries per row
   */
  record BlockTable(long address, long stride) {}

  /**
   * Where the keys of layers without a cache are put for a step.
   *
   * @param tokens keys of all requests, -1 when the plan has no place for them
   * @param slots address of each key's slot
   * @param table blocks by request
   * @param blocks number of blocks
   */
  record PackedKeys(long tokens, long slots, BlockTable table, int blocks) {
    static final PackedKeys NONE = new PackedKeys(-1, 0, new BlockTable(0, 0), 0);
  }

  /**
   * Requires that the leased memory still holds this plan.
   *
   * @throws BifocalException {@code CLOSED}
   */
  void requireCurrent() {
    if (!lease.scope().isAlive() || lease.get(ValueLayout.JAVA_LONG_UNALIGNED, 0) != stamp) {
      throw BifocalException.of(ErrorCode.CLOSED, "the step of this metadata is over");
    }
  }
}

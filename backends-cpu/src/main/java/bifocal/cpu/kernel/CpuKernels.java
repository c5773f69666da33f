package bifocal.cpu.kernel;

/**
 * The kernels behind the CPU backends. They compute and own nothing: no threads, no state between
 * calls. Two calls may run at once if they write different memory and use different scratch.
 *
 * <p>All bounds were checked before a call; see the parameter blocks for what holds.
 */
public interface CpuKernels {
  /** What computes, for instance {@code vector-512}; logs and reports name it. */
  String name();

  /** Query tokens of one item that suit long queries best; at least 1. */
  int queryTile(AttendParams params);

  /** Bytes of scratch, aligned to 64, for items of at most so many query tokens. */
  long scratchBytes(AttendParams params, int queryCount);

  /**
   * Computes items.
   *
   * @param items address of the first {@link WorkItem}
   * @param scratch address of memory that only this call uses
   */
  void attend(AttendParams params, long items, long count, long scratch);

  /**
   * Merges partial results.
   *
   * @param items address of the first {@link MergeItem}
   */
  void merge(AttendParams params, long items, long count);

  /** Stores tokens {@code first .. first + count - 1} of a step in the cache. */
  void writeKv(KvWriteParams params, long first, long count);
}

package bifocal.cuda.flashinfer;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * What XQA reads of runs of one query each: their numbers of keys, and their pages as rows of equal
 * length. Rows of a table on the host are copied; a table on the device is read where it lies, if
 * it has the runs in its order.
 *
 * @param key the module
 * @param runs the runs, one query each, whose rows of q follow each other
 * @param pages their pages
 * @param columns length of a row
 * @param padded rows that are there whatever the number of runs, when it can be captured
 */
record PageRows(ModuleKey.Xqa key, RunList runs, PageTable pages, int columns, int padded) {

  /** Most numbers of a table: others lie beside it in the memory of a step. */
  private static final long MOST_INTS = Integer.MAX_VALUE / 8;

  /** The rows of some runs, if XQA can serve them. */
  static Option<PageRows> of(
      ModuleKey.Xqa key,
      CommonAttentionMetadata batch,
      KvCacheSpec cache,
      RunList runs,
      boolean uniform) {
    if (runs.size() == 0 || !runs.singles() || !runs.rowsTogether()) {
      return Option.none();
    }
    PageTable pages = PageTable.of(batch, cache, runs);
    if (!pages.copied()) {
      return inPlace(key, runs, pages);
    }
    int longest = 0;
    for (int run = 0; run < runs.size(); run++) {
      longest = Math.max(longest, runs.pages(run));
    }
    boolean graph = uniform && pages.tight();
    int columns = graph ? Math.toIntExact(batch.blockTable().size(1)) : longest;
    int padded = graph ? batch.requests() : LaunchDraft.EAGER;
    return Option.when(pages.tight(), new PageRows(key, runs, pages, columns, padded))
        .filter(PageRows::counted);
  }

  private static Option<PageRows> inPlace(ModuleKey.Xqa key, RunList runs, PageTable pages) {
    TensorView table = pages.inPlace();
    int longest = Integer.MAX_VALUE / key.pageSize();
    boolean rows = table.stride(0) >= table.size(1) && table.stride(0) <= longest;
    for (int run = 1; run < runs.size(); run++) {
      rows &= runs.tableRow(run) == runs.tableRow(0) + run;
    }
    return Option.when(
            rows, () -> new PageRows(key, runs, pages, (int) table.stride(0), LaunchDraft.EAGER))
        .filter(PageRows::counted);
  }

  /** Whether all that is counted fits the numbers that count it. */
  private boolean counted() {
    return (long) columns * key.pageSize() <= Integer.MAX_VALUE
        && (long) entries() * columns <= MOST_INTS;
  }

  boolean graph() {
    return padded != LaunchDraft.EAGER;
  }

  /** Rows, those of padding counted. */
  int entries() {
    return Math.max(runs.size(), padded);
  }

  /** Numbers of the rows that are copied. */
  int copiedInts() {
    return pages.copied() ? entries() * columns : 0;
  }

  /** Most keys of a row, by its length. */
  int mostKeys() {
    return columns * key.pageSize();
  }

  /** Keys of a run from the first page of its row on. */
  private int keys(int run) {
    int skipped = pages.copied() ? 0 : runs.firstPage(run) * key.pageSize();
    return runs.seqLen(run) + skipped;
  }

  /**
   * Writes what is copied. Padding has one key, the first of the cache; its rows are not kept.
   *
   * @param keysAt where the numbers of keys begin
   * @param rowsAt where the rows begin
   * @param listAt where the list of pages was written
   */
  void write(MemorySegment to, int keysAt, int rowsAt, int listAt) {
    for (int run = 0; run < runs.size(); run++) {
      to.setAtIndex(ValueLayout.JAVA_INT, keysAt + run, keys(run));
    }
    for (int entry = runs.size(); entry < entries(); entry++) {
      to.setAtIndex(ValueLayout.JAVA_INT, keysAt + entry, 1);
    }
    if (pages.copied()) {
      to.asSlice(4L * rowsAt, 4L * copiedInts()).fill((byte) 0);
      for (int run = 0; run < runs.size(); run++) {
        long from = 4L * (listAt + pages.start(runs, run));
        long at = 4L * (rowsAt + (long) run * columns);
        MemorySegment.copy(to, from, to, at, 4L * runs.pages(run));
      }
    }
  }

  /** The rows of a table on the device. */
  TensorView inPlace() {
    TensorView table = pages.inPlace();
    long first = runs.tableRow(0) * table.stride(0);
    return TensorView.of(
        table.data().asSlice(first * Integer.BYTES),
        DType.INT32,
        table.device(),
        (long) (runs.size() - 1) * columns + table.size(1));
  }
}

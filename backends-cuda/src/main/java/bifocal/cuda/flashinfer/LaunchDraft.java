package bifocal.cuda.flashinfer;

import bifocal.core.device.Device;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.flashinfer.FlashInferStep.Task;
import bifocal.cuda.flashinfer.ModuleKey.Engine;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A launch while its step is built: which runs, by which module, and how its arrays are laid out.
 *
 * <p>Kernels take the rows and pages of run {@code i} from neighbours {@code i} and {@code i + 1}
 * of an array. Where rows or pages of two runs do not follow each other, an entry without queries
 * lies between them. What a module plans from counts rows without the gaps; see {@link RowPatch}.
 *
 * @param task which of the step's launches
 * @param runs what it computes
 * @param pages the pages of the runs
 * @param key the module
 * @param mask mask mode
 * @param padded entries that are there whatever the number of runs, when it can be captured
 * @param single what XQA reads, where it computes the runs unless log-sum-exps are asked for
 */
record LaunchDraft(
    Task task,
    RunList runs,
    PageTable pages,
    ModuleKey key,
    int mask,
    int padded,
    Option<PageRows> single) {
  /** {@code padded} of a launch that is never captured. */
  static final int EAGER = 0;

  boolean graph() {
    return padded != EAGER;
  }

  /** Whether what computes the runs without log-sum-exps can be captured. */
  boolean capturable() {
    return single.map(PageRows::graph).getOrElse(graph());
  }

  /** Entries without those between runs, for as many requests as a captured batch has. */
  private int mostRuns() {
    int most = Math.max(runs.size(), padded);
    return Math.max(most, single.map(PageRows::padded).getOrElse(EAGER));
  }

  /** Rows that memory is planned for. */
  long mostRows() {
    return Math.max(runs.queries(), mostRuns());
  }

  /** Entries that memory is planned for. */
  long mostEntries() {
    return spaced() ? 2L * mostRuns() : mostRuns();
  }

  private boolean fa2Prefill() {
    return key instanceof ModuleKey.Prefill prefill && prefill.engine() == Engine.FA2;
  }

  /** Whether rows or pages have gaps that the kernels would otherwise read. */
  private boolean spaced() {
    return fa2Prefill() && !(runs.rowsTogether() && pages.tight());
  }

  /** Entries of the arrays, those without queries counted. */
  int entries() {
    int count = Math.max(runs.size(), padded);
    return spaced() ? 2 * count : count;
  }

  /** Whether partial outputs may be merged: the merge writes rows that follow each other. */
  boolean divisible(boolean window) {
    return runs.rowsTogether() && !(task == Task.FULL && window);
  }

  /** Whether the module may leave partial outputs, which the launches of a step share. */
  boolean partials(boolean window) {
    boolean fa3 = key instanceof ModuleKey.Prefill prefill && prefill.engine() == Engine.FA3;
    return single.isDefined() || (!fa3 && divisible(window));
  }

  int firstRow() {
    return runs.firstRow();
  }

  int rows() {
    return runs.endRow() - runs.firstRow();
  }

  /** Numbers of the arrays that kernels read, pages not counted. */
  int arrayInts() {
    return 3 * entries() + 2;
  }

  /** Numbers of the arrays that only the plan reads. */
  int planInts() {
    return 3 * entries() + 2;
  }

  /** Where the array of first pages begins, behind that of first rows. */
  int pageStartAt() {
    return entries() + 1;
  }

  /** Where the array of keys in last pages begins. */
  int lastAt() {
    return 2 * entries() + 2;
  }

  /** Writes the arrays that kernels read. */
  void writeArrays(MemorySegment to, int at) {
    int step = spaced() ? 2 : 1;
    int entries = entries();
    int first = firstRow();
    for (int run = 0; run < runs.size(); run++) {
      int entry = run * step;
      int start = pages.start(runs, run);
      put(to, at + entry, runs.queryStart(run) - first);
      put(to, at + pageStartAt() + entry, start);
      put(to, at + lastAt() + entry, runs.lastPageLen(run));
      if (step == 2) {
        put(to, at + entry + 1, runs.queryEnd(run) - first);
        put(to, at + pageStartAt() + entry + 1, start + runs.pages(run));
        put(to, at + lastAt() + entry + 1, 1);
      }
    }
    int last = runs.size() - 1;
    for (int entry = runs.size() * step; entry <= entries; entry++) {
      put(to, at + entry, runs.queryEnd(last) - first);
      put(to, at + pageStartAt() + entry, pages.start(runs, last) + runs.pages(last));
    }
    for (int entry = runs.size() * step; entry < entries; entry++) {
      put(to, at + lastAt() + entry, 1);
    }
  }

  /** Writes the arrays that the plan reads: rows and pages as if there were no gaps. */
  void writePlan(MemorySegment to, int at) {
    int step = spaced() ? 2 : 1;
    int entries = entries();
    boolean fa3 = key instanceof ModuleKey.Prefill prefill && prefill.engine() == Engine.FA3;
    int row = 0;
    int page = 0;
    for (int run = 0; run < runs.size(); run++) {
      int entry = run * step;
      put(to, at + entry, row);
      put(to, at + pageStartAt() + entry, fa3 ? pages.start(runs, run) : page);
      put(to, at + lastAt() + entry, runs.seqLen(run));
      row += runs.queryLen(run);
      page += runs.pages(run);
      if (step == 2) {
        put(to, at + entry + 1, row);
        put(to, at + pageStartAt() + entry + 1, page);
        put(to, at + lastAt() + entry + 1, 0);
      }
    }
    for (int entry = runs.size() * step; entry <= entries; entry++) {
      put(to, at + entry, row);
      put(to, at + pageStartAt() + entry, page);
    }
    for (int entry = runs.size() * step; entry < entries; entry++) {
      put(to, at + lastAt() + entry, 0);
    }
  }

  /** Where the rows of an entry begin, which a plan is told by {@link RowPatch}. */
  int rowOfEntry(int entry) {
    int step = spaced() ? 2 : 1;
    int run = Math.min(entry / step, runs.size() - 1);
    int row =
        entry % step == 0 && entry / step < runs.size() ? runs.queryStart(run) : runs.queryEnd(run);
    return row - firstRow();
  }

  private static void put(MemorySegment to, int index, int value) {
    to.setAtIndex(ValueLayout.JAVA_INT, index, value);
  }

  /** A part of the arrays as a tensor. */
  static TensorView ints(MemorySegment memory, Device device, int at, int count) {
    return TensorView.of(
        memory.asSlice((long) at * Integer.BYTES, (long) count * Integer.BYTES),
        DType.INT32,
        device,
        count);
  }
}

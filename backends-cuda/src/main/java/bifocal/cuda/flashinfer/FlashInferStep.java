package bifocal.cuda.flashinfer;

import bifocal.core.graph.GraphKey;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspaceView;
import bifocal.tvm.ObjectReference;
import java.lang.ref.Cleaner;
import java.util.List;
import java.util.stream.Collectors;

/**
 * What one step's launches read.
 *
 * @param workspace where the step's memory is leased; the step is over when that is closed
 * @param tokens rows of q that the live requests reach
 * @param largestBlock largest block that is read, -1 when the host does not know
 * @param launches what is called, in order
 * @param sums rows whose log-sum-exp is converted
 * @param graphKey what a captured graph may be replayed for
 */
record FlashInferStep(
    WorkspaceView workspace,
    int tokens,
    int largestBlock,
    List<Launch> launches,
    SumRows sums,
    GraphKey graphKey)
    implements FlashInferMetadata {
  private static final Cleaner CLEANER = Cleaner.create();

  /** Gives the plans up when nobody holds the step any longer. */
  FlashInferStep {
    launches.stream()
        .flatMap(launch -> launch.plan().stream())
        .forEach(plan -> CLEANER.register(this, plan::close));
  }

  @Override
  public String kernels() {
    return launches.stream().map(launch -> launch.key().label()).collect(Collectors.joining(", "));
  }

  /** Which of a step's launches. */
  enum Task {
    /** Runs of few queries. */
    FEW,
    /** Runs of many queries that see no later keys. */
    CAUSAL,
    /** Runs whose queries see all keys until the run's end. */
    FULL
  }

  /**
   * One call of a module.
   *
   * @param key the module
   * @param mask mask mode
   * @param plan what the module planned; none for a module that does not plan
   * @param ints where the plan lies on the device
   * @param floats memory for partial outputs
   * @param queryStart first row of each run, counted from the launch's first, and the end
   * @param pageStart first page of each run in the list, and the end
   * @param pages the list of pages
   * @param lastPageLen keys in the last page of each run
   * @param firstRow first row of q
   * @param rows rows of q
   */
  record Launch(
      ModuleKey key,
      int mask,
      List<ObjectReference> plan,
      TensorView ints,
      TensorView floats,
      TensorView queryStart,
      TensorView pageStart,
      TensorView pages,
      TensorView lastPageLen,
      int firstRow,
      int rows) {}

  /**
   * Rows of the log-sum-exp that the launches write, as ranges: first row and count.
   *
   * @param address of the ranges on the device
   * @param count ranges
   * @param longest most rows of a range, padding included
   */
  record SumRows(long address, int count, int longest) {}
}

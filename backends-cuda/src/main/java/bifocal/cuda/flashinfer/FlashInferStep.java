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
 * @param lastBeside whether the last launch may run at the same time as those before it
 * @param sums rows whose log-sum-exp is converted
 * @param graphKey what a captured graph may be replayed for
 */
record FlashInferStep(
    WorkspaceView workspace,
    int tokens,
    int largestBlock,
    List<Launch> launches,
    boolean lastBeside,
    SumRows sums,
    GraphKey graphKey)
    implements FlashInferMetadata {
  private static final Cleaner CLEANER = Cleaner.create();

  /** Gives the plans up when nobody holds the step any longer. */
  FlashInferStep {
    launches.stream()
        .map(Launch::planned)
        .flatMap(launch -> launch.plan().stream())
        .forEach(plan -> CLEANER.register(this, plan::close));
  }

  @Override
  public String kernels() {
    return launches.stream().map(Launch::label).collect(Collectors.joining(", "));
  }

  /** Which of a step's launches. */
  enum Task {
    /** Runs of one query, where kernels that were written for them can compute them. */
    ONE,
    /** Runs of few queries. */
    FEW,
    /** Runs of many queries that see no later keys. */
    CAUSAL,
    /** Runs whose queries see all keys until the run's end. */
    FULL
  }

  /** One call of a module. */
  sealed interface Launch {
    /** The module. */
    ModuleKey key();

    /** First row of q. */
    int firstRow();

    /** Rows of q. */
    int rows();

    /** True names of the kernels. */
    String label();

    /** The call whose module planned: this one, or the one that stands in for it. */
    Planned planned();
  }

  /**
   * A call of a module that plans.
   *
   * @param mask mask mode
   * @param plan what the module planned
   * @param ints where the plan lies on the device
   * @param floats memory for partial outputs
   * @param queryStart first row of each run, counted from the launch's first, and the end
   * @param pageStart first page of each run in the list, and the end
   * @param pages the list of pages
   * @param lastPageLen keys in the last page of each run
   * @param graph whether the plan holds for what a graph is replayed for
   */
  record Planned(
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
      int rows,
      boolean graph)
      implements Launch {
    @Override
    public String label() {
      return key.label();
    }

    @Override
    public Planned planned() {
      return this;
    }
  }

  /**
   * A call of XQA for runs of one query, which needs no plan and returns no log-sum-exp.
   *
   * @param pages of each run, rows of equal length
   * @param mostKeys keys that a row has room for
   * @param keys of each run
   * @param counters zero between launches
   * @param partials memory for partial outputs
   * @param packed where a recorded launch puts its rows, those of padding among them
   * @param live address of the range of rows that are not padding
   * @param padded rows of a recorded launch, {@link LaunchDraft#EAGER} where it is never recorded
   * @param planned the call that is made instead where log-sum-exps are asked for, or where the
   *     heads of a cache do not lie on multiples of their size
   */
  record Single(
      ModuleKey.Xqa key,
      TensorView pages,
      int mostKeys,
      TensorView keys,
      TensorView counters,
      TensorView partials,
      TensorView packed,
      long live,
      int firstRow,
      int rows,
      int padded,
      Planned planned)
      implements Launch {
    @Override
    public String label() {
      return key.label() + " (for log-sum-exps " + planned.label() + ")";
    }
  }

  /**
   * Rows of the log-sum-exp that the launches write, as ranges: first row and count.
   *
   * @param address of the ranges on the device
   * @param count ranges
   * @param longest most rows of a range, padding included
   */
  record SumRows(long address, int count, int longest) {}
}

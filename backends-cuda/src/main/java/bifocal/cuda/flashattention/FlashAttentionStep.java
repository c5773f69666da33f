package bifocal.cuda.flashattention;

import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspaceView;
import java.util.List;
import java.util.stream.Collectors;

/**
 * What one step's calls read.
 *
 * @param workspace where the step's memory is leased; the step is over when that is closed
 * @param tokens rows of q that the live requests reach
 * @param largestBlock largest block that is read, -1 when the host does not know
 * @param calls what is called; a second call may run at the same time as the first
 * @param sums where log-sum-exps go that nobody asked for
 */
record FlashAttentionStep(
    WorkspaceView workspace, int tokens, int largestBlock, List<Call> calls, TensorView sums)
    implements FlashAttentionMetadata {

  @Override
  public String kernels() {
    return calls.stream().map(call -> call.key().label()).collect(Collectors.joining("; "));
  }

  /**
   * One call of a forward.
   *
   * @param key the forward
   * @param left keys visible before a query, for a forward that takes bounds
   * @param right keys visible after a query, for a forward that takes bounds
   * @param starts first row of each run, and the end
   * @param used rows of each run
   * @param keys keys of each run
   * @param blocks blocks of each run
   */
  record Call(
      ForwardKey key,
      int left,
      int right,
      TensorView starts,
      TensorView used,
      TensorView keys,
      TensorView blocks) {}
}

package bifocal.cuda.triton;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.graph.GraphKey;
import bifocal.core.workspace.WorkspaceView;
import io.vavr.control.Option;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * What one step's launches read, by device address.
 *
 * @param workspace where the step's memory is leased; the step is over when that is closed
 * @param variant the child that built it
 * @param tokens rows of q that the live requests reach
 * @param largestBlock largest block that is read, -1 when the host does not know
 * @param blockTable first entry of the block table
 * @param blockTableStride entries from row to row
 * @param keyLow smallest key of each q row, any address when windows decide
 * @param keyHigh largest key of each q row, any address when windows decide
 * @param prefill tiles of the prefill kernel
 * @param decode tiles of the decode kernel
 * @param splits programs of one decode tile
 * @param partialOut where a q row's partial outputs would lie were row 0 among them
 * @param partialLse the same for their log-sum-exps
 * @param graphKey what a captured graph may be replayed for
 */
record TritonStep(
    WorkspaceView workspace,
    TritonVariant variant,
    int tokens,
    int largestBlock,
    long blockTable,
    long blockTableStride,
    long keyLow,
    long keyHigh,
    Tiles prefill,
    Tiles decode,
    int splits,
    long partialOut,
    long partialLse,
    GraphKey graphKey)
    implements TritonMetadata {

  /**
   * Tiles of a launch.
   *
   * @param address first tile
   * @param count tiles, padding included
   * @param perUnit tiles that belong together
   */
  record Tiles(long address, int count, int perUnit) {}

  @Override
  public String kernels() {
    String name = "triton-" + variant.kernels().label();
    return Stream.of(
            Option.when(prefill.count() > 0, name + "-prefill"),
            Option.when(decode.count() > 0, name + "-decode"),
            Option.when(decode.count() > 0 && splits > 1, "triton-merge"))
        .flatMap(Option::toJavaStream)
        .collect(Collectors.joining(", "));
  }

  /**
   * Requires that the step is not over and was built by this child.
   *
   * @throws BifocalException {@code CLOSED} or {@code INVALID_PARAMETER}
   */
  void requireCurrent(TritonVariant wanted) {
    workspace.requireOpen();
    if (variant != wanted) {
      throw BifocalException.of(ErrorCode.INVALID_PARAMETER, "metadata of a step", variant, wanted);
    }
  }
}

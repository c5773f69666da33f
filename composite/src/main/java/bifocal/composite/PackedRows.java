package bifocal.composite;

import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import bifocal.core.workspace.WorkspaceView;
import io.vavr.control.Option;
import java.util.Arrays;

/**
 * Rows of a child whose requests do not lie together: q is copied together before it runs, the
 * output is copied back after. Both pass through planned workspace, one child at a time. Keys and
 * values stay where they are.
 */
public final class PackedRows implements QueryRows {
  private static final String Q = "packed.q";
  private static final String OUT = "packed.out";
  private static final String LSE = "packed.lse";

  private final int[] firstRows;
  private final int[] counts;
  private final int endRow;
  private final TensorView q;
  private final AttentionOutput out;
  private final AttentionOutput outWithLse;
  private final AttentionOutput wideOut;
  private final AttentionOutput wideOutWithLse;

  private PackedRows(
      int[] firstRows,
      int[] counts,
      int endRow,
      TensorView q,
      TensorView out,
      TensorView wideOut,
      TensorView lse) {
    this.firstRows = firstRows;
    this.counts = counts;
    this.endRow = endRow;
    this.q = q;
    this.out = AttentionOutput.of(out);
    this.outWithLse = new AttentionOutput(out, Option.some(lse));
    this.wideOut = AttentionOutput.of(wideOut);
    this.wideOutWithLse = new AttentionOutput(wideOut, Option.some(lse));
  }

  /** Adds the regions that hold so many rows to a plan. */
  static WorkspacePlan plan(WorkspacePlan plan, AttentionLayerSpec layer, int queryTokens) {
    long rows = Math.multiplyExact((long) queryTokens, (long) layer.numHeads());
    long wide = DType.FP32.bytes();
    return plan.withScratch(Q, bytes(rows, layer.headSize(), layer.dtype().bytes()))
        .withScratch(OUT, bytes(rows, layer.headSizeV(), wide))
        .withScratch(LSE, bytes(rows, 1, wide));
  }

  private static long bytes(long rows, long elements, long width) {
    return Math.multiplyExact(rows, Math.multiplyExact(elements, width));
  }

  /**
   * Rows of some requests in the order of a batch.
   *
   * @param part requests whose query rows lie apart
   */
  static PackedRows of(
      WorkspaceView workspace,
      LaunchContext launch,
      AttentionLayerSpec layer,
      CommonAttentionMetadata part,
      int queryTokens) {
    int heads = layer.numHeads();
    int[] firstRows = new int[part.live()];
    int[] counts = new int[part.live()];
    int runs = 0;
    for (int r = 0; r < part.live(); r++) {
      int start = part.queryStart(r);
      if (runs == 0 || firstRows[runs - 1] + counts[runs - 1] != start) {
        firstRows[runs++] = start;
      }
      counts[runs - 1] += part.queryLen(r);
    }
    return new PackedRows(
        Arrays.copyOf(firstRows, runs),
        Arrays.copyOf(counts, runs),
        part.tokens(),
        view(workspace, launch, Q, layer.dtype(), queryTokens, heads, layer.headSize()),
        view(workspace, launch, OUT, layer.dtype(), queryTokens, heads, layer.headSizeV()),
        view(workspace, launch, OUT, DType.FP32, queryTokens, heads, layer.headSizeV()),
        view(workspace, launch, LSE, DType.FP32, queryTokens, heads));
  }

  private static TensorView view(
      WorkspaceView workspace, LaunchContext launch, String region, DType dtype, long... shape) {
    return TensorView.of(workspace.region(region), dtype, launch.device(), shape);
  }

  <M extends AttentionMetadata> void forward(
      AttentionImpl<M> impl,
      LaunchContext launch,
      TensorView from,
      KvCacheView cache,
      M metadata,
      AttentionOutput to) {
    AttentionOutput packed = outputLike(to);
    requireLike("q", from, q);
    requireLike("output", to.out(), packed.out());
    if (to.lse().isDefined()) {
      requireLike("log-sum-exp", to.lse().get(), packed.lse().get());
    }
    gather(launch, from, q);
    impl.forward(launch, q, cache, metadata, packed);
    scatter(launch, packed.out(), to.out());
    if (to.lse().isDefined()) {
      scatter(launch, packed.lse().get(), to.lse().get());
    }
  }

  private AttentionOutput outputLike(AttentionOutput wanted) {
    boolean wide = wanted.out().dtype() == DType.FP32;
    return wanted.lse().isDefined() ? wide ? wideOutWithLse : outWithLse : wide ? wideOut : out;
  }

  /** Requires another tensor of the same rows, dense inside a row. */
  private void requireLike(String name, TensorView tensor, TensorView packed) {
    boolean fits =
        tensor.rank() == packed.rank()
            && tensor.dtype() == packed.dtype()
            && tensor.size(0) >= endRow;
    for (int i = 1; fits && i < packed.rank(); i++) {
      fits =
          tensor.size(i) == packed.size(i)
              && (tensor.size(i) == 1 || tensor.stride(i) == packed.stride(i));
    }
    if (!fits) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          name + " of a batch that is divided between two backends",
          tensor,
          "at least " + endRow + " rows, each dense and like those of " + packed);
    }
  }

  private void gather(LaunchContext launch, TensorView from, TensorView packed) {
    long to = 0;
    for (int i = 0; i < firstRows.length; i++) {
      copy(launch, from, firstRows[i], packed, to, counts[i], rowBytes(packed));
      to += counts[i];
    }
  }

  private void scatter(LaunchContext launch, TensorView packed, TensorView to) {
    long from = 0;
    for (int i = 0; i < firstRows.length; i++) {
      copy(launch, packed, from, to, firstRows[i], counts[i], rowBytes(packed));
      from += counts[i];
    }
  }

  private static long rowBytes(TensorView tensor) {
    return tensor.stride(0) * tensor.dtype().bytes();
  }

  private static void copy(
      LaunchContext launch,
      TensorView from,
      long first,
      TensorView to,
      long at,
      int rows,
      long rowBytes) {
    long fromStride = rowBytes(from);
    long toStride = rowBytes(to);
    if (fromStride == rowBytes && toStride == rowBytes) {
      launch.copy(from.data(), first * rowBytes, to.data(), at * rowBytes, rows * rowBytes);
      return;
    }
    for (int i = 0; i < rows; i++) {
      launch.copy(from.data(), (first + i) * fromStride, to.data(), (at + i) * toStride, rowBytes);
    }
  }
}

package bifocal.composite;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspacePlan;
import java.lang.foreign.MemorySegment;

/** Builds what one child runs of a step. */
final class ChildBuilder<M extends AttentionMetadata> {
  private final Part<M> part;
  private final AttentionMetadataBuilder<M> builder;
  private final LayerGroup group;
  private final LayerGroup view;
  private final KvCacheSpec cache;
  private final boolean indirect;

  ChildBuilder(
      Part<M> part, AttentionMetadataBuilder<M> builder, LayerGroup group, KvCacheSpec cache) {
    this.part = part;
    this.builder = builder;
    this.group = group;
    this.view = part.view(group);
    this.cache = cache;
    this.indirect = part.indirect();
  }

  AttentionMetadataBuilder<M> builder() {
    return builder;
  }

  /** The child runs the whole batch. */
  ChildRun<M> whole(StepContext step, LayerGroup of, CommonAttentionMetadata batch) {
    return build(step, of, part.view(batch), batch.live(), batch.tokens(), QueryRows.IN_PLACE);
  }

  /** The child runs some of a batch's requests, each in one piece or in runs. */
  ChildRun<M> some(StepContext step, LayerGroup of, BatchCut cut) {
    CommonAttentionMetadata piece =
        part.carriesImages() ? cut.cut().withImages() : cut.cut().withoutImages();
    if (indirect) {
      return build(step, of, piece, cut.requests(), cut.queryTokens(), QueryRows.IN_PLACE);
    }
    boolean together = rowsTogether(piece);
    QueryRows rows =
        together
            ? QueryRows.IN_PLACE
            : PackedRows.of(step.workspace(), step.launch(), of.spec(), piece, cut.queryTokens());
    CommonAttentionMetadata packed =
        piece.packed(together ? piece.queryStart(0) : 0, blockTable(step, piece));
    return build(step, of, packed, cut.requests(), cut.queryTokens(), rows);
  }

  private ChildRun<M> build(
      StepContext step,
      LayerGroup of,
      CommonAttentionMetadata batch,
      int requests,
      int queryTokens,
      QueryRows rows) {
    LayerGroup seen = of.equals(group) ? view : part.view(of);
    StepContext own = step.child(part.prefix());
    try {
      return new ChildRun<>(
          builder.build(own, seen, batch), seen, requests, queryTokens, rows, own.workspace());
    } catch (RuntimeException | Error failure) {
      own.workspace().markDirty();
      throw failure;
    }
  }

  private static boolean rowsTogether(CommonAttentionMetadata piece) {
    boolean together = true;
    for (int r = 1; r < piece.live(); r++) {
      together &= piece.queryStart(r) == piece.queryStart(r - 1) + piece.queryLen(r - 1);
    }
    return together;
  }

  /** Block table whose row is the request: a part of the batch's own where that is possible. */
  private TensorView blockTable(StepContext step, CommonAttentionMetadata piece) {
    int first = piece.blockTableRow(0);
    boolean together = true;
    for (int r = 1; r < piece.live(); r++) {
      together &= piece.blockTableRow(r) == first + r;
    }
    return together
        ? piece.blockTable().rows(first, (long) first + piece.live())
        : copiedBlockTable(step, piece);
  }

  private TensorView copiedBlockTable(StepContext step, CommonAttentionMetadata piece) {
    TensorView table = requireCopyable(step, piece.blockTable());
    long blocks = Math.min(cache.blocksFor(piece.maxSeqLen()), table.size(1));
    long rowBytes = blocks * Integer.BYTES;
    MemorySegment rows = step.workspace().lease(piece.live() * rowBytes, WorkspacePlan.ALIGNMENT);
    for (int r = 0; r < piece.live(); r++) {
      long from = piece.blockTableRow(r) * table.stride(0) * Integer.BYTES;
      step.launch().copy(table.data(), from, rows, r * rowBytes, rowBytes);
    }
    return TensorView.of(rows, DType.INT32, table.device(), piece.live(), blocks);
  }

  private TensorView requireCopyable(StepContext step, TensorView table) {
    table.require("block table of a divided batch", DType.INT32, step.launch().device(), -1, -1);
    if (table.size(1) > 1 && table.stride(1) != 1) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "rows of the block table", "stride " + table.stride(1), 1);
    }
    return table;
  }
}

package bifocal.composite;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;

/** Builds what one child runs of a step. */
final class ChildBuilder<M extends AttentionMetadata> {
  private final Part<M> part;
  private final AttentionMetadataBuilder<M> builder;
  private final LayerGroup group;
  private final LayerGroup view;

  ChildBuilder(Part<M> part, AttentionMetadataBuilder<M> builder, LayerGroup group) {
    this.part = part;
    this.builder = builder;
    this.group = group;
    this.view = part.view(group);
  }

  AttentionMetadataBuilder<M> builder() {
    return builder;
  }

  /** The child runs the whole batch. */
  ChildRun<M> whole(StepContext step, LayerGroup of, CommonAttentionMetadata batch) {
    return build(step, of, part.view(batch), batch.live(), batch.tokens());
  }

  private ChildRun<M> build(
      StepContext step,
      LayerGroup of,
      CommonAttentionMetadata batch,
      int requests,
      int queryTokens) {
    LayerGroup seen = of.equals(group) ? view : part.view(of);
    StepContext own = step.child(part.prefix());
    try {
      return new ChildRun<>(
          builder.build(own, seen, batch), seen, requests, queryTokens, own.workspace());
    } catch (RuntimeException | Error failure) {
      own.workspace().markDirty();
      throw failure;
    }
  }
}

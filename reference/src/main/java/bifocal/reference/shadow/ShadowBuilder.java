package bifocal.reference.shadow;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;
import io.vavr.control.Option;

/** Builds a batch twice. */
final class ShadowBuilder<P extends AttentionMetadata, S extends AttentionMetadata>
    implements AttentionMetadataBuilder<ShadowMetadata<P, S>> {
  private final AttentionMetadataBuilder<P> primary;
  private final AttentionMetadataBuilder<S> shadow;
  private final ShadowListener listener;

  ShadowBuilder(
      AttentionMetadataBuilder<P> primary,
      AttentionMetadataBuilder<S> shadow,
      ShadowListener listener) {
    this.primary = primary;
    this.shadow = shadow;
    this.listener = listener;
  }

  @Override
  public ShadowMetadata<P, S> build(
      StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
    P own = primary.build(step.child(ShadowBackend.PRIMARY), group, batch);
    long start = System.nanoTime();
    Option<S> beside = shadowOf(step, group, batch);
    long nanos = System.nanoTime() - start;
    return new ShadowMetadata<>(step.step(), group, batch, own, beside, nanos, step.workspace());
  }

  private Option<S> shadowOf(StepContext step, LayerGroup group, CommonAttentionMetadata batch) {
    StepContext apart =
        new StepContext(new Unobserved(step.launch()), step.workspace(), step.step());
    try {
      return Option.some(shadow.build(apart.child(ShadowBackend.SHADOW), group, batch));
    } catch (RuntimeException failure) {
      listener.failed(step.step(), group, failure);
      return Option.none();
    }
  }

  @Override
  public Option<Integer> decodeThreshold() {
    return primary.decodeThreshold();
  }

  @Override
  public void close() {
    try {
      primary.close();
    } finally {
      shadow.close();
    }
  }
}

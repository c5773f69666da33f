package bifocal.reference.shadow;

import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.reference.Agreement;
import java.lang.foreign.MemorySegment;

/** Runs one layer twice: for the result, and to compare. */
final class ShadowImpl<P extends AttentionMetadata, S extends AttentionMetadata>
    implements AttentionImpl<ShadowMetadata<P, S>> {
  private static final byte NOT_A_NUMBER = (byte) 0xff;

  private final AttentionImpl<P> primary;
  private final AttentionImpl<S> shadow;
  private final LayerParameters parameters;
  private final boolean shadowReturnsLse;
  private final ShadowListener listener;

  ShadowImpl(
      AttentionImpl<P> primary,
      AttentionImpl<S> shadow,
      LayerParameters parameters,
      boolean shadowReturnsLse,
      ShadowListener listener) {
    this.primary = primary;
    this.shadow = shadow;
    this.parameters = parameters;
    this.shadowReturnsLse = shadowReturnsLse;
    this.listener = listener;
  }

  @Override
  public void writeKv(LaunchContext launch, KvInput input, KvCacheView cache, SlotMapping slots) {
    primary.writeKv(launch, input, cache, slots);
  }

  @Override
  public void forward(
      LaunchContext launch,
      TensorView q,
      KvCacheView cache,
      ShadowMetadata<P, S> metadata,
      AttentionOutput output) {
    long start = System.nanoTime();
    primary.forward(launch, q, cache, metadata.primary(), output);
    long done = System.nanoTime();
    if (metadata.shadow().isEmpty() || metadata.batch().isEmpty()) {
      return;
    }
    AttentionOutput apart = shadowOutput(metadata, output);
    try {
      shadow.forward(new Unobserved(launch), q, cache, metadata.shadow().get(), apart);
    } catch (RuntimeException failure) {
      metadata.workspace().child(ShadowBackend.SHADOW).markDirty();
      listener.failed(metadata.step(), metadata.group(), failure);
      return;
    }
    Agreement agreement = Agreement.between(metadata.batch(), output, apart);
    listener.compared(
        new ShadowComparison(
            metadata.step(),
            metadata.group(),
            metadata.batch(),
            parameters,
            q,
            cache,
            output,
            apart,
            agreement,
            done - start,
            System.nanoTime() - done));
  }

  /** Room for the shadow's output, filled so that a row it leaves out is found. */
  private AttentionOutput shadowOutput(ShadowMetadata<P, S> metadata, AttentionOutput output) {
    TensorView out = output.out();
    TensorView apart =
        filled(
            metadata.workspace().region(ShadowBackend.OUT),
            out.dtype(),
            metadata.batch().tokens(),
            out.size(1),
            out.size(2));
    return new AttentionOutput(
        apart,
        output
            .lse()
            .filter(lse -> shadowReturnsLse)
            .map(
                lse ->
                    filled(
                        metadata.workspace().region(ShadowBackend.LSE),
                        DType.FP32,
                        metadata.batch().tokens(),
                        lse.size(1))));
  }

  private static TensorView filled(MemorySegment region, DType type, long... shape) {
    long elements = 1;
    for (long size : shape) {
      elements = Math.multiplyExact(elements, size);
    }
    MemorySegment memory = region.asSlice(0, elements * type.bytes());
    memory.fill(NOT_A_NUMBER);
    return TensorView.ofHost(memory, type, shape);
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

package bifocal.conformance;

import bifocal.conformance.ValueSource.Kind;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.tensor.DType;
import bifocal.reference.KeyValues;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;

/**
 * Keys and values as they must be in the cache: made anew from the source of numbers, and stored
 * and loaded once by the layout where the cache's type is not the layer's.
 */
final class ExpectedKeyValues implements KeyValues {
  private final Step<?> step;
  private final Tensors tensors;
  private final KvCacheSpec spec;
  private final Option<MemorySegment> scratch;

  ExpectedKeyValues(Step<?> step) {
    this.step = step;
    this.tensors = step.rig().tensors();
    this.spec = step.rig().spec();
    DType own = step.rig().layer().dtype();
    boolean exact = spec.dtype().elementType().contains(own) && spec.scales().isOne();
    this.scratch = Option.when(!exact, () -> step.rig().blocks().scratch());
  }

  @Override
  public void readKey(int request, int position, int kvHead, float[] key) {
    fill(Kind.KEY, request, position, kvHead, key);
    for (MemorySegment block : scratch) {
      spec.layout().write(spec, block, 0, kvHead, key, new float[spec.headSizeV()]);
      spec.layout().readKey(spec, block, 0, kvHead, key);
    }
  }

  @Override
  public void readValue(int request, int position, int kvHead, float[] value) {
    fill(Kind.VALUE, request, position, kvHead, value);
    for (MemorySegment block : scratch) {
      spec.layout().write(spec, block, 0, kvHead, new float[spec.headSize()], value);
      spec.layout().readValue(spec, block, 0, kvHead, value);
    }
  }

  private void fill(Kind kind, int request, int position, int head, float[] numbers) {
    for (int d = 0; d < numbers.length; d++) {
      numbers[d] = tensors.number(kind, step.sequence(request), position, head, d);
    }
  }
}

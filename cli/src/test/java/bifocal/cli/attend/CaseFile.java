package bifocal.cli.attend;

import bifocal.core.safetensors.Safetensors;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.reference.HostTensor;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.Random;

/** A case that a test writes. */
final class CaseFile {
  private final Arena arena;
  private Map<String, String> texts = LinkedHashMap.empty();
  private Map<String, TensorView> tensors = LinkedHashMap.empty();

  private CaseFile(Arena arena) {
    this.arena = arena;
  }

  /** One request whose keys are logits: head size 2, one head, scale 1, q = (1, 0). */
  static CaseFile logits(Arena arena, float... logits) {
    float[] keys = new float[2 * logits.length];
    float[] values = new float[2 * logits.length];
    for (int i = 0; i < logits.length; i++) {
      keys[2 * i] = logits[i];
      values[2 * i] = i == 0 ? 1 : 0;
      values[2 * i + 1] = i;
    }
    return new CaseFile(arena)
        .floats("q", DType.FP32, new float[] {1, 0}, 1, 1, 2)
        .floats("k", DType.FP32, keys, logits.length, 1, 2)
        .floats("v", DType.FP32, values, logits.length, 1, 2)
        .ints("query_lens", 1)
        .ints("seq_lens", logits.length)
        .text("scale", "1")
        .text("causal", "true");
  }

  /** Requests given as pairs of query_len and seq_len, with random numbers. */
  static CaseFile random(
      Arena arena, long seed, DType dtype, int heads, int kvHeads, int size, int... lens) {
    int[] queryLens = new int[lens.length / 2];
    int[] seqLens = new int[lens.length / 2];
    int queries = 0;
    int keys = 0;
    for (int r = 0; r < queryLens.length; r++) {
      queryLens[r] = lens[2 * r];
      seqLens[r] = lens[2 * r + 1];
      queries += queryLens[r];
      keys += seqLens[r];
    }
    Random random = new Random(seed);
    return new CaseFile(arena)
        .floats("q", dtype, normal(random, queries * heads * size), queries, heads, size)
        .floats("k", dtype, normal(random, keys * kvHeads * size), keys, kvHeads, size)
        .floats("v", dtype, normal(random, keys * kvHeads * size), keys, kvHeads, size)
        .ints("query_lens", queryLens)
        .ints("seq_lens", seqLens)
        .text("causal", "true");
  }

  static float[] normal(Random random, int count) {
    float[] numbers = new float[count];
    for (int i = 0; i < count; i++) {
      numbers[i] = (float) random.nextGaussian();
    }
    return numbers;
  }

  CaseFile floats(String name, DType dtype, float[] values, long... shape) {
    MemorySegment memory = arena.allocate((long) values.length * dtype.bytes(), 64);
    HostTensor flat = HostTensor.over(TensorView.ofHost(memory, dtype, values.length));
    for (int i = 0; i < values.length; i++) {
      flat.put(values[i], i);
    }
    return tensor(name, TensorView.ofHost(memory, dtype, shape));
  }

  CaseFile ints(String name, int... values) {
    MemorySegment memory = arena.allocateFrom(ValueLayout.JAVA_INT, values);
    return tensor(name, TensorView.ofHost(memory, DType.INT32, values.length));
  }

  /** Images as triples of request, first and last position. */
  CaseFile images(int... triples) {
    MemorySegment memory = arena.allocateFrom(ValueLayout.JAVA_INT, triples);
    return tensor("images", TensorView.ofHost(memory, DType.INT32, triples.length / 3, 3));
  }

  CaseFile tensor(String name, TensorView tensor) {
    tensors = tensors.put(name, tensor);
    return this;
  }

  CaseFile without(String name) {
    tensors = tensors.remove(name);
    texts = texts.remove(name);
    return this;
  }

  CaseFile text(String key, String value) {
    texts = texts.put(key, value);
    return this;
  }

  void write(Path path) {
    new Safetensors(texts, tensors).write(path);
  }
}

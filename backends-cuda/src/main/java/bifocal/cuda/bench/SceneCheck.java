package bifocal.cuda.bench;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.driver.CudaStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** Computes a few outputs of a workload in doubles and compares them. */
final class SceneCheck {
  private static final int ROWS = 5;
  private static final double OUT = 1.2e-2;
  private static final double LSE = 1e-3;

  private final GpuScene<?> scene;
  private final GpuWork work;
  private final int sequence;

  private SceneCheck(GpuScene<?> scene) {
    this.scene = scene;
    this.work = scene.work();
    this.sequence = work.batch() - 1;
  }

  /**
   * Poisons the output, runs with and without log-sum-exps, and compares rows of the last sequence.
   *
   * @return the largest error of a row, relative to its size
   * @throws BifocalException {@code INTERNAL} past the bound
   */
  static double run(GpuScene<?> scene) {
    SceneCheck check = new SceneCheck(scene);
    return Math.max(check.after(scene::forwardWithLse, true), check.after(scene::forward, false));
  }

  private double after(Runnable forward, boolean sums) {
    CudaStream stream = scene.launch().queue();
    stream.fill(scene.output().out().data(), (byte) 0xFF);
    stream.fill(scene.output().lse().get().data(), (byte) 0xFF);
    forward.run();
    stream.synchronize();
    return worst(sums);
  }

  private double worst(boolean sums) {
    try (Arena arena = Arena.ofConfined()) {
      KvCacheView host = hostCache(arena);
      double worst = 0;
      for (int i = 0; i < ROWS; i++) {
        int query = (int) ((long) (work.queries() - 1) * i / Math.max(1, ROWS - 1));
        int head = (7 * i + 3) % work.heads();
        worst = Math.max(worst, error(arena, host, query, head, sums));
      }
      return worst;
    }
  }

  /** Blocks of the last sequence, numbered as on the device; others stay zero. */
  private KvCacheView hostCache(Arena arena) {
    KvCacheSpec spec = scene.cache().spec();
    long bytes = spec.blockBytes();
    int blocks = spec.blocksFor(work.keys());
    MemorySegment memory = arena.allocate(blocks * bytes, 64);
    CudaStream stream = scene.launch().queue();
    for (int i = 0; i < blocks; i++) {
      stream.copyToHost(
          scene.cache().memory(),
          scene.cache().blockOffset(scene.block(sequence, i)),
          memory,
          i * bytes,
          bytes);
    }
    stream.synchronize();
    return KvCacheView.wrap(memory, spec, Device.HOST, blocks, bytes);
  }

  private double error(Arena arena, KvCacheView host, int query, int head, boolean sums) {
    int row = sequence * work.queries() + query;
    int position = work.keys() - work.queries() + query;
    double[] q = row(arena, scene.q(), row, head);
    double[] out = row(arena, scene.output().out(), row, head);
    double[] expected = new double[q.length];
    double lse = attend(host, q, head, position, expected);
    double difference = 0;
    double size = 0;
    for (int d = 0; d < q.length; d++) {
      difference += (out[d] - expected[d]) * (out[d] - expected[d]);
      size += expected[d] * expected[d];
    }
    double error = Math.sqrt(difference / Math.max(size, 1e-6));
    double off = sums ? Math.abs(lse(arena, row, head) - lse) : 0;
    if (!(error <= OUT) || !(off <= LSE)) {
      throw BifocalException.of(
          ErrorCode.INTERNAL,
          work.title() + ", row " + row + ", head " + head,
          "off by " + error + ", log-sum-exp by " + off,
          "at most " + OUT + " and " + LSE);
    }
    return error;
  }

  private double attend(KvCacheView host, double[] q, int head, int position, double[] expected) {
    int kvHead = head / (work.heads() / work.kvHeads());
    float[] key = new float[q.length];
    float[] value = new float[q.length];
    KvCacheView.TokenAccess tokens = host.tokens(host.spec().layout());
    double most = Double.NEGATIVE_INFINITY;
    double total = 0;
    for (int at = work.firstKey(position); at <= work.lastKey(position); at++) {
      tokens.readKey(at, kvHead, key);
      tokens.readValue(at, kvHead, value);
      double x = 0;
      for (int d = 0; d < q.length; d++) {
        x += q[d] * key[d];
      }
      x *= work.layer().scale();
      double larger = Math.max(most, x);
      double before = Math.exp(most - larger);
      double weight = Math.exp(x - larger);
      total = total * before + weight;
      for (int d = 0; d < q.length; d++) {
        expected[d] = expected[d] * before + weight * value[d];
      }
      most = larger;
    }
    for (int d = 0; d < q.length; d++) {
      expected[d] /= total;
    }
    return most + Math.log(total);
  }

  private double[] row(Arena arena, TensorView tensor, int row, int head) {
    long bytes = 2L * work.headSize();
    MemorySegment copy = arena.allocate(bytes, 16);
    CudaStream stream = scene.launch().queue();
    long at = 2 * (row * tensor.stride(0) + head * tensor.stride(1));
    stream.copyToHost(tensor.data(), at, copy, 0, bytes);
    stream.synchronize();
    double[] numbers = new double[work.headSize()];
    for (int d = 0; d < numbers.length; d++) {
      numbers[d] = NarrowFloats.load(copy, 2L * d, DType.BF16);
    }
    return numbers;
  }

  private double lse(Arena arena, int row, int head) {
    TensorView lse = scene.output().lse().get();
    MemorySegment copy = arena.allocate(4, 16);
    CudaStream stream = scene.launch().queue();
    stream.copyToHost(lse.data(), 4 * (row * lse.stride(0) + head), copy, 0, 4);
    stream.synchronize();
    return NarrowFloats.load(copy, 0, DType.FP32);
  }
}

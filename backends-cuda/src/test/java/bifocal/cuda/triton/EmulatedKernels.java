package bifocal.cuda.triton;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.KernelArgument;
import bifocal.cuda.pack.KernelEntry;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.Specialisation;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The kernels of a pack in plain Java, for the stand-in for the driver: a launch runs over the very
 * parameters and memory that the device would get. What kernels do is written in {@code
 * kernels/triton/README.md}; here it is done one number at a time.
 */
@SuppressWarnings("restricted")
public final class EmulatedKernels implements AutoCloseable {
  private static final double LN_2 = Math.log(2);
  private static final MemorySegment MEMORY = MemorySegment.NULL.reinterpret(Long.MAX_VALUE);

  private final Map<String, Known> entries = new HashMap<>();
  private final Map<String, Body> others = new HashMap<>();
  private final Arena arena = Arena.ofShared();
  private final FakeCuda fake;
  private @Nullable Throwable failure;

  private EmulatedKernels(FakeCuda fake, KernelPack pack) {
    this.fake = fake;
    pack.manifest().kernels().values().forEach(e -> entries.put(e.symbol(), Known.of(e)));
  }

  /** A kernel and its parameters by name. */
  private record Known(KernelEntry entry, Map<String, KernelArgument> arguments) {
    static Known of(KernelEntry entry) {
      Map<String, KernelArgument> arguments = new HashMap<>();
      entry.arguments().forEach(argument -> arguments.put(argument.name(), argument));
      return new Known(entry, arguments);
    }
  }

  /** A kernel of another library: its blocks along each axis, and its parameters one by one. */
  @FunctionalInterface
  public interface Body {
    void run(int x, int y, int z, MemorySegment parameters);
  }

  /** The same, and a kernel that is in no pack. */
  public EmulatedKernels with(String symbol, Body body) {
    others.put(symbol, body);
    return this;
  }

  /** All memory, as a kernel sees it. */
  public static MemorySegment memory() {
    return MEMORY;
  }

  /** Runs every launch of the stand-in from now on. */
  public static EmulatedKernels over(FakeCuda fake, KernelPack pack) {
    EmulatedKernels kernels = new EmulatedKernels(fake, pack);
    try {
      MethodHandle observer =
          MethodHandles.lookup()
              .findVirtual(
                  EmulatedKernels.class,
                  "launched",
                  MethodType.methodType(
                      void.class,
                      MemorySegment.class,
                      MemorySegment.class,
                      MemorySegment.class,
                      long.class))
              .bindTo(kernels);
      fake.observe(
          Linker.nativeLinker()
              .upcallStub(
                  observer,
                  FunctionDescriptor.ofVoid(ADDRESS, ADDRESS, ADDRESS, JAVA_LONG),
                  kernels.arena));
      return kernels;
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }

  /** Throws what went wrong in a launch. */
  public void requireFine() {
    if (failure != null) {
      throw new AssertionError("a launch of an emulated kernel failed", failure);
    }
  }

  @Override
  public void close() {
    fake.observe(MemorySegment.NULL);
    arena.close();
  }

  void launched(MemorySegment name, MemorySegment geometry, MemorySegment values, long bytes) {
    try {
      String symbol = name.reinterpret(256).getString(0);
      MemorySegment grid = geometry.reinterpret(7L * Integer.BYTES);
      Body other = others.get(symbol);
      if (other != null) {
        other.run(
            grid.getAtIndex(JAVA_INT, 0),
            grid.getAtIndex(JAVA_INT, 1),
            grid.getAtIndex(JAVA_INT, 2),
            values.reinterpret(bytes));
        return;
      }
      Known known = entries.get(symbol);
      if (known == null) {
        throw new IllegalStateException("no such kernel");
      }
      run(
          new Launch(known.entry(), known.arguments(), values.reinterpret(bytes)),
          grid.getAtIndex(JAVA_INT, 0),
          grid.getAtIndex(JAVA_INT, 1),
          grid.getAtIndex(JAVA_INT, 2));
    } catch (Throwable e) {
      // An exception that left an upcall would end the JVM.
      failure = failure == null ? e : failure;
    }
  }

  private static void run(Launch launch, int x, int y, int z) {
    switch (launch.entry.specialisation()) {
      case Specialisation.Write write -> launch.write(write, x, y);
      case Specialisation.Merge merge -> launch.merge(merge, x, y, z);
      case Specialisation.Attention attention -> {
        if (attention.engine() == Specialisation.Engine.HOPPER) {
          if (x < 1 || x > launch.number("num_tiles") * launch.number("num_kv_heads")) {
            throw new IllegalStateException("programs " + x);
          }
          int tiles = launch.number("num_tiles");
          if (tiles % launch.number("tiles_per_unit") != 0) {
            throw new IllegalStateException(tiles + " tiles are no whole units");
          }
          launch.attend(attention, tiles, launch.number("num_kv_heads"), 1);
        } else {
          launch.attend(attention, x, y, launch.number("num_splits"));
          if (z != launch.number("num_splits")) {
            throw new IllegalStateException("grid of splits " + z);
          }
        }
      }
    }
  }

  /** One launch and its parameters. */
  private record Launch(
      KernelEntry entry, Map<String, KernelArgument> arguments, MemorySegment values) {
    private KernelArgument argument(String name) {
      KernelArgument argument = arguments.get(name);
      if (argument == null) {
        throw new IllegalStateException("no parameter " + name);
      }
      return argument;
    }

    private int offset(String name) {
      return argument(name).offset();
    }

    boolean has(String name) {
      return arguments.containsKey(name);
    }

    int number(String name) {
      return values.get(ValueLayout.JAVA_INT_UNALIGNED, offset(name));
    }

    long address(String name) {
      long value = values.get(ValueLayout.JAVA_LONG_UNALIGNED, offset(name));
      int multiple = argument(name).multipleOf();
      if (value % multiple != 0) {
        throw new IllegalStateException(name + " is no multiple of " + multiple + ": " + value);
      }
      return value;
    }

    float real(String name) {
      return values.get(ValueLayout.JAVA_FLOAT_UNALIGNED, offset(name));
    }

    private static int int32(long address, long index) {
      return MEMORY.get(ValueLayout.JAVA_INT_UNALIGNED, address + 4 * index);
    }

    private static float float32(long address, long index) {
      return MEMORY.get(ValueLayout.JAVA_FLOAT_UNALIGNED, address + 4 * index);
    }

    private static DType type(DType model, CacheFormat cache) {
      return switch (cache.numbers()) {
        case SAME -> model;
        case E4M3 -> DType.FP8_E4M3;
        case E5M2 -> DType.FP8_E5M2;
        case INT8 -> DType.INT8;
      };
    }

    void write(Specialisation.Write write, int tokens, int headPrograms) {
      int heads = number("num_kv_heads");
      if (headPrograms != Math.ceilDiv(heads, 8)) {
        throw new IllegalStateException("grid of heads " + headPrograms);
      }
      for (int token = 0; token < tokens; token++) {
        long slot =
            MEMORY.get(ValueLayout.JAVA_LONG_UNALIGNED, address("slot_mapping") + 8L * token);
        for (int head = 0; slot >= 0 && head < heads; head++) {
          store(write, "key", "k", token, slot, head);
          store(write, "value", "v", token, slot, head);
        }
      }
    }

    private void store(
        Specialisation.Write write, String from, String side, int token, long slot, int head) {
      long block = slot / number("block_size");
      long inside = slot % number("block_size");
      DType model = write.dtype();
      DType cached = type(model, write.cache());
      long source =
          address(from)
              + (token * address(from + "_stride_token") + head * address(from + "_stride_head"))
                  * model.bytes();
      long target =
          address(side + "_cache")
              + (block * address(side + "_stride_block")
                      + inside * address(side + "_stride_slot")
                      + head * address(side + "_stride_head"))
                  * cached.bytes();
      long scaleAt = address(side + "_scales") + 4 * scaleIndex(side, block, inside, head);
      float[] numbers = new float[write.headSize()];
      float largest = 0;
      for (int d = 0; d < numbers.length; d++) {
        numbers[d] = NarrowFloats.load(MEMORY, source + (long) d * model.bytes(), model);
        largest = Math.max(largest, Math.abs(numbers[d]));
      }
      float scale = 1;
      if (write.cache().tokenScales()) {
        float limit = cached == DType.INT8 ? 127 : cached == DType.FP8_E4M3 ? 448 : 57344;
        scale = largest == 0 ? 1 : largest / limit;
        MEMORY.set(ValueLayout.JAVA_FLOAT_UNALIGNED, scaleAt, scale);
      } else if (write.cache().quantised()) {
        scale = float32(scaleAt, 0);
      }
      for (int d = 0; d < numbers.length; d++) {
        float stored = write.cache().quantised() ? numbers[d] / scale : numbers[d];
        NarrowFloats.store(MEMORY, target + (long) d * cached.bytes(), cached, stored);
      }
    }

    private long scaleIndex(String side, long block, long slot, int head) {
      return block * address(side + "s_stride_block")
          + slot * address(side + "s_stride_slot")
          + head * address(side + "s_stride_head");
    }

    void attend(Specialisation.Attention of, int tiles, int kvHeads, int splits) {
      for (int tile = 0; tile < tiles; tile++) {
        long fields = address("tiles") + 32L * tile;
        if (int32(fields, 1) > 0) {
          for (int head = 0; head < kvHeads; head++) {
            for (int split = 0; split < splits; split++) {
              attend(of, fields, head, kvHeads, split, splits);
            }
          }
        }
      }
    }

    private void attend(
        Specialisation.Attention of, long fields, int kvHead, int kvHeads, int split, int splits) {
      int tokens = int32(fields, 1);
      if (tokens > entry.tile().get().tokens()) {
        throw new IllegalStateException("a tile of " + tokens + " tokens");
      }
      int[] lows = new int[tokens];
      int[] highs = new int[tokens];
      int least = Integer.MAX_VALUE;
      int most = Integer.MIN_VALUE;
      for (int i = 0; i < tokens; i++) {
        interval(of, fields, i, lows, highs);
        least = Math.min(least, lows[i]);
        most = Math.max(most, highs[i]);
      }
      int step = entry.tile().get().keys();
      int begin = Math.max(least, 0) / step * step;
      int end = Math.max(most + 1, begin);
      int each = Math.ceilDiv(Math.ceilDiv(end - begin, step), splits) * step;
      int from = begin + split * each;
      int to = Math.max(Math.min(from + each, end), from);
      for (int i = 0; i < tokens; i++) {
        for (int g = 0; g < of.group(); g++) {
          Row row = new Row(of, fields, i, kvHead * of.group() + g, kvHead, split == 0);
          row.attend(this, Math.max(lows[i], from), Math.min(highs[i], to - 1));
          long token = int32(fields, 0) + i;
          if (splits == 1) {
            row.store(this, token);
          } else {
            row.storePartial(this, (token * kvHeads * of.group() + row.head) * splits + split);
          }
        }
      }
    }

    private void interval(
        Specialisation.Attention of, long fields, int i, int[] lows, int[] highs) {
      int keys = int32(fields, 3);
      if (of.variant() == Specialisation.Variant.GENERAL) {
        long token = int32(fields, 0) + i;
        lows[i] = Math.max(int32(address("key_low"), token), 0);
        highs[i] = Math.min(int32(address("key_high"), token), keys - 1);
        return;
      }
      int at = int32(fields, 2) + i;
      int left = int32(fields, 4);
      int right = int32(fields, 5);
      lows[i] = left < 0 ? 0 : Math.max(at - left, 0);
      highs[i] = right < 0 ? keys - 1 : Math.min(at + right, keys - 1);
    }

    /** Address of one cached head. */
    long cached(Specialisation.Attention of, String side, long block, long slot, int head) {
      int bytes = type(of.dtype(), of.cache()).bytes();
      if (has(side + "_map")) {
        int map = offset(side + "_map");
        long base = values.get(ValueLayout.JAVA_LONG_UNALIGNED, map);
        long mask = (1L << 48) - 1;
        long perHead = values.get(ValueLayout.JAVA_LONG_UNALIGNED, map + 8 * 8) & mask;
        long perSlot = values.get(ValueLayout.JAVA_LONG_UNALIGNED, map + 9 * 8) & mask;
        long perBlock = values.get(ValueLayout.JAVA_LONG_UNALIGNED, map + 10 * 8) & mask;
        if (perBlock
            != bytes
                * values.get(ValueLayout.JAVA_LONG_UNALIGNED, offset(side + "_map_stride_0"))) {
          throw new IllegalStateException("the map's strides are not those beside it");
        }
        return base + block * perBlock + slot * perSlot + head * perHead;
      }
      return address(side + "_cache")
          + (block * address(side + "_stride_block")
                  + slot * address(side + "_stride_slot")
                  + head * address(side + "_stride_head"))
              * bytes;
    }

    void merge(Specialisation.Merge merge, int tiles, int heads, int tileTokens) {
      int splits = number("num_splits");
      for (int tile = 0; tile < tiles; tile++) {
        long fields = address("tiles") + 32L * tile;
        for (int i = 0; i < Math.min(tileTokens, int32(fields, 1)); i++) {
          for (int head = 0; head < heads; head++) {
            merge(merge, int32(fields, 0) + (long) i, head, heads, splits);
          }
        }
      }
    }

    private void merge(Specialisation.Merge merge, long token, int head, int heads, int splits) {
      long slot = (token * heads + head) * splits;
      double most = Double.NEGATIVE_INFINITY;
      for (int split = 0; split < splits; split++) {
        most = Math.max(most, float32(address("partial_lse"), slot + split));
      }
      double total = 0;
      double[] out = new double[merge.headSize()];
      for (int split = 0; split < splits && most > Double.NEGATIVE_INFINITY; split++) {
        double weight = Math.pow(2, float32(address("partial_lse"), slot + split) - most);
        total += weight;
        for (int d = 0; d < out.length && weight > 0; d++) {
          long at = (slot + split) * merge.headSize() + d;
          out[d] += weight * float32(address("partial_out"), at);
        }
      }
      for (int d = 0; d < out.length; d++) {
        out[d] = total > 0 ? out[d] / total : 0;
      }
      write(
          merge.wide() ? DType.FP32 : merge.dtype(),
          token,
          head,
          out,
          total > 0 ? (most + Math.log(total) / LN_2) * LN_2 : most);
    }

    void write(DType type, long token, int head, double[] out, double lse) {
      long to =
          address("out")
              + (token * address("out_stride_token") + head * address("out_stride_head"))
                  * type.bytes();
      for (int d = 0; d < out.length; d++) {
        NarrowFloats.store(MEMORY, to + (long) d * type.bytes(), type, (float) out[d]);
      }
      if (number("write_lse") != 0) {
        long at =
            address("lse")
                + 4 * (token * address("lse_stride_token") + head * address("lse_stride_head"));
        MEMORY.set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, (float) lse);
      }
    }
  }

  /** One query head of one query token. */
  private static final class Row {
    private final Specialisation.Attention of;
    private final long fields;
    private final int local;
    private final int head;
    private final int kvHead;
    private final boolean withSink;
    private final double[] out;
    private double lse = Double.NEGATIVE_INFINITY;

    Row(
        Specialisation.Attention of,
        long fields,
        int local,
        int head,
        int kvHead,
        boolean withSink) {
      this.of = of;
      this.fields = fields;
      this.local = local;
      this.head = head;
      this.kvHead = kvHead;
      this.withSink = withSink;
      this.out = new double[of.headSize()];
    }

    void attend(Launch launch, int low, int high) {
      double[] logits = new double[Math.max(0, high - low + 1)];
      double most = Double.NEGATIVE_INFINITY;
      double sink = Double.NEGATIVE_INFINITY;
      if (withSink && launch.number("has_sinks") != 0) {
        sink = Launch.float32(launch.address("sinks"), head);
      }
      double[] q = query(launch);
      for (int key = low; key <= high; key++) {
        logits[key - low] = logit(launch, q, key);
        most = Math.max(most, logits[key - low]);
      }
      most = Math.max(most, sink);
      if (most == Double.NEGATIVE_INFINITY) {
        return;
      }
      double total = Math.exp(sink - most);
      for (int key = low; key <= high; key++) {
        double weight = Math.exp(logits[key - low] - most);
        total += weight;
        add(launch, key, weight);
      }
      for (int d = 0; d < out.length; d++) {
        out[d] /= total;
      }
      lse = most + Math.log(total);
    }

    private double logit(Launch launch, double[] q, int key) {
      double[] k = cached(launch, "k", key);
      double dot = 0;
      for (int d = 0; d < q.length; d++) {
        dot += q[d] * k[d];
      }
      double x = launch.real("softmax_scale") * dot;
      if (of.softcap()) {
        x = launch.real("softcap") * Math.tanh(x / launch.real("softcap"));
      }
      if (of.alibi()) {
        int at = Launch.int32(fields, 2) + local;
        x += Launch.float32(launch.address("alibi_slopes"), head) * (double) (key - at);
      }
      return x;
    }

    private double[] query(Launch launch) {
      long token = Launch.int32(fields, 0) + (long) local;
      DType type = of.dtype();
      long at =
          launch.address("q")
              + (token * launch.address("q_stride_token") + head * launch.address("q_stride_head"))
                  * type.bytes();
      return vector(at, type);
    }

    private double[] vector(long at, DType type) {
      double[] numbers = new double[of.headSize()];
      for (int d = 0; d < numbers.length; d++) {
        numbers[d] = NarrowFloats.load(MEMORY, at + (long) d * type.bytes(), type);
      }
      return numbers;
    }

    private void add(Launch launch, int key, double weight) {
      double[] v = cached(launch, "v", key);
      for (int d = 0; d < out.length; d++) {
        out[d] += weight * v[d];
      }
    }

    private double[] cached(Launch launch, String side, int key) {
      long row =
          launch.address("block_table")
              + 4 * Launch.int32(fields, 6) * launch.address("block_table_stride");
      long block = Launch.int32(row, key / of.blockSize());
      long slot = key % of.blockSize();
      double[] numbers =
          vector(launch.cached(of, side, block, slot, kvHead), Launch.type(of.dtype(), of.cache()));
      if (of.cache().quantised()) {
        float scale =
            Launch.float32(
                launch.address(side + "_scales"), launch.scaleIndex(side, block, slot, kvHead));
        for (int d = 0; d < numbers.length; d++) {
          numbers[d] *= scale;
        }
      }
      return numbers;
    }

    void store(Launch launch, long token) {
      launch.write(of.wide() ? DType.FP32 : of.dtype(), token, head, out, lse);
    }

    void storePartial(Launch launch, long slot) {
      long to = launch.address("partial_out") + 4 * slot * of.headSize();
      for (int d = 0; d < out.length; d++) {
        MEMORY.set(ValueLayout.JAVA_FLOAT_UNALIGNED, to + 4L * d, (float) out[d]);
      }
      MEMORY.set(
          ValueLayout.JAVA_FLOAT_UNALIGNED,
          launch.address("partial_lse") + 4 * slot,
          (float) (lse / LN_2));
    }
  }
}

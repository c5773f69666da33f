package bifocal.cuda.flashinfer;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.tensor.DType;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.flashinfer.ModuleKey.Engine;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.Specialisation;
import bifocal.cuda.pack.Specialisation.Attention;
import bifocal.cuda.pack.Specialisation.Phase;
import bifocal.cuda.pack.SyntheticPack;
import bifocal.cuda.triton.EmulatedKernels;
import bifocal.cuda.triton.TritonDevice;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.io.TempDir;

/** The suite over stand-ins for driver and modules: every byte that Java hands over is used. */
@TestInstance(Lifecycle.PER_CLASS)
class FlashInferEmulatedTest implements FlashInferSuite, FlashInferStepSuite {
  private static final int HEAD = 64;

  private CudaContext context;
  private TritonDevice kernels;
  private @Nullable FlashInferDevice device;
  private EmulatedKernels emulated;
  private FakeCuda fake;

  @BeforeAll
  void open(@TempDir Path packs) {
    fake = FakeCuda.resetOrSkip();
    fake.devices(1, 9, 0, 8L << 30);
    FakeModules modules = FakeModules.in(packs);
    for (boolean window : new boolean[] {false, true}) {
      modules
          .with(new ModuleKey.Decode(DType.BF16, HEAD, window, false))
          .with(new ModuleKey.Prefill(Engine.FA2, DType.BF16, HEAD, window, false));
    }
    for (DType dtype : new DType[] {DType.BF16, DType.FP16}) {
      modules
          .with(new ModuleKey.Decode(dtype, HEAD, dtype == DType.BF16, dtype == DType.BF16))
          .with(new ModuleKey.Prefill(Engine.FA2, dtype, HEAD, false, dtype == DType.BF16));
    }
    modules
        .with(new ModuleKey.Prefill(Engine.FA2, DType.BF16, HEAD, true, true))
        .with(new ModuleKey.Xqa(DType.FP16, HEAD, 16, 2, false))
        .with(new ModuleKey.Prefill(Engine.FA3, DType.BF16, HEAD, false, false))
        .with(new ModuleKey.Xqa(DType.BF16, HEAD, 16, 2, false))
        .with(new ModuleKey.Xqa(DType.BF16, HEAD, 16, 2, true));
    context = CudaContext.primary(fake.driver(), 0);
    KernelPack pack = KernelPack.open(pack(packs), context.device().capability()).get();
    kernels = TritonDevice.of(context, pack);
    emulated = emulate(fake, pack);
    device =
        new FlashInferDevice(
            kernels,
            FlashInferPack.open(modules.write(), context.device().capability()).get(),
            FlashInferEmulatedTest::rowKernels);
  }

  static EmulatedKernels emulate(FakeCuda fake, KernelPack pack) {
    return EmulatedKernels.over(fake, pack)
        .with(NaturalLog.NAME, FlashInferEmulatedTest::naturalLog)
        .with(LiveRows.NAME, FlashInferEmulatedTest::liveRows);
  }

  static byte[] rowKernels() {
    return FakeCuda.image(
        90, FakeCuda.kernel(NaturalLog.NAME, 8, 8, 4), FakeCuda.kernel(LiveRows.NAME, 8, 8, 8, 4));
  }

  /** What the second kernel of {@code rows.ptx} does. */
  private static void liveRows(int x, int y, int z, MemorySegment parameters) {
    MemorySegment memory = EmulatedKernels.memory();
    long from = parameters.get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
    long to = parameters.get(ValueLayout.JAVA_LONG_UNALIGNED, 8);
    long range = parameters.get(ValueLayout.JAVA_LONG_UNALIGNED, 16);
    long bytes = 16L * Math.min(256 * x, parameters.get(ValueLayout.JAVA_INT_UNALIGNED, 24));
    int first = memory.get(ValueLayout.JAVA_INT, range);
    int rows = Math.min(y, memory.get(ValueLayout.JAVA_INT, range + 4));
    for (int row = 0; row < rows; row++) {
      MemorySegment.copy(memory, from + bytes * row, memory, to + bytes * (first + row), bytes);
    }
  }

  /** What the first kernel of {@code rows.ptx} does. */
  private static void naturalLog(int x, int y, int z, MemorySegment parameters) {
    MemorySegment memory = EmulatedKernels.memory();
    long sums = parameters.get(ValueLayout.JAVA_LONG_UNALIGNED, 0);
    long ranges = parameters.get(ValueLayout.JAVA_LONG_UNALIGNED, 8);
    int heads = parameters.get(ValueLayout.JAVA_INT_UNALIGNED, 16);
    for (int range = 0; range < y; range++) {
      int first = memory.get(ValueLayout.JAVA_INT, ranges + 8L * range);
      int rows = memory.get(ValueLayout.JAVA_INT, ranges + 8L * range + 4);
      for (int i = 0; i < Math.min(256 * x, rows * heads); i++) {
        long at = sums + 4L * ((long) first * heads + i);
        memory.set(
            ValueLayout.JAVA_FLOAT,
            at,
            memory.get(ValueLayout.JAVA_FLOAT, at) * (float) Math.log(2));
      }
    }
  }

  static Path pack(Path packs) {
    SyntheticPack pack = SyntheticPack.in(packs);
    for (int group : new int[] {2, 4}) {
      Attention decode =
          new Attention(
              Phase.DECODE,
              Specialisation.Engine.PORTABLE,
              Specialisation.Variant.GENERAL,
              DType.BF16,
              CacheFormat.SAME,
              HEAD,
              group,
              16,
              false,
              false);
      pack.with(decode).with(decode.in(Phase.PREFILL));
    }
    pack.with(new Specialisation.Write(DType.BF16, CacheFormat.SAME, HEAD))
        .with(new Specialisation.Write(DType.FP16, CacheFormat.SAME, HEAD))
        .with(new Specialisation.Merge(DType.BF16, HEAD));
    return pack.write();
  }

  @AfterAll
  void close() {
    if (device == null) {
      return;
    }
    device.close();
    emulated.close();
    kernels.close();
    context.close();
    emulated.requireFine();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  @Override
  public FlashInferDevice device() {
    return Objects.requireNonNull(device);
  }

  @Override
  public List<Shape> shapes() {
    return List.of(
        new Shape(HEAD, 2, 16, true, true),
        new Shape(HEAD, 4, 16, true, true),
        new Shape(DType.BF16, HEAD, 2, 16, true, false, true),
        new Shape(DType.FP16, HEAD, 2, 16, false, false, false));
  }

  @Override
  public boolean replays() {
    return false;
  }

  @Override
  public int repetitions() {
    return 2;
  }

  @Override
  public long seed() {
    return 20_261_129;
  }

  @Override
  public int longest() {
    return 330;
  }
}

package bifocal.cuda.flashinfer;

import bifocal.core.error.BifocalException;
import bifocal.core.tensor.DType;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaDriver;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.pack.Specialisation.Attention;
import bifocal.cuda.pack.Specialisation.Phase;
import bifocal.cuda.pack.Specialisation.Variant;
import bifocal.cuda.triton.TritonDevice;
import bifocal.cuda.triton.TritonHost;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.opentest4j.TestAbortedException;

/**
 * The suite on a GPU, over the packs that {@code -Dbifocal.cuda.packs} names. {@code
 * -Dbifocal.seed=N} repeats a run, {@code -Dbifocal.conformance.scale=N} makes it N times as long.
 */
@Tag("gpu")
@TestInstance(Lifecycle.PER_CLASS)
class FlashInferGpuTest implements FlashInferSuite, FlashInferStepSuite {
  private static final long SEED = Long.getLong("bifocal.seed", System.currentTimeMillis());
  private static final boolean SMALL = Boolean.getBoolean("bifocal.gpu.small");

  private CudaContext context;
  private TritonDevice kernels;
  private @Nullable FlashInferDevice device;

  @BeforeAll
  void open() {
    Path packs = Path.of(System.getProperty(TritonHost.PROPERTY, "no-packs"));
    context = CudaContext.primary(CudaDriver.load(), 0);
    kernels =
        TritonDevice.of(context, required(KernelPack.open(packs, context.device().capability())));
    Validation<PackRefusal, FlashInferPack> modules =
        FlashInferPack.open(packs, context.device().capability());
    if (modules.isInvalid()) {
      kernels.close();
      context.close();
      throw new TestAbortedException(modules.getError().line());
    }
    device = new FlashInferDevice(kernels, modules.get());
    System.out.println(
        context.device() + ", seed " + SEED + ", modules " + device.pack().labels().mkString(", "));
  }

  private static <T> T required(Validation<PackRefusal, T> found) {
    return found.fold(
        refusal -> {
          throw refusal.asException();
        },
        value -> value);
  }

  @AfterAll
  void close() {
    if (device == null) {
      return;
    }
    device.close();
    kernels.close();
    try {
      context.close();
    } catch (BifocalException inUse) {
      throw new AssertionError("something is left open in the context", inUse);
    }
  }

  @Override
  public FlashInferDevice device() {
    return Objects.requireNonNull(device);
  }

  /** Every shape of this project's kernels that there are modules for, and of other modules one. */
  @Override
  public List<Shape> shapes() {
    return Vector.ofAll(pairs())
        .appendAll(
            device()
                .pack()
                .modules()
                .keySet()
                .toVector()
                .filter(key -> key instanceof ModuleKey.Prefill)
                .map(key -> (ModuleKey.Prefill) key)
                .filter(key -> key.softcap() || key.dtype() != DType.BF16)
                .map(key -> shape(key.dtype(), key.headSize(), key.softcap()))
                .distinct())
        .toJavaList();
  }

  private Shape shape(DType dtype, int headSize, boolean cap) {
    return new Shape(dtype, headSize, 4, 64, hasMany(dtype, headSize, true, cap), false, cap);
  }

  private List<Shape> pairs() {
    return kernels
        .pack()
        .manifest()
        .kernels()
        .keySet()
        .toVector()
        .filter(known -> known instanceof Attention)
        .map(known -> (Attention) known)
        .filter(
            known ->
                known.phase() == Phase.DECODE
                    && known.variant() == Variant.GENERAL
                    && known.dtype() == DType.BF16
                    && known.cache().equals(CacheFormat.SAME)
                    && !known.softcap()
                    && !known.alibi())
        .map(
            known ->
                new Shape(
                    known.headSize(),
                    known.group(),
                    known.blockSize(),
                    hasMany(DType.BF16, known.headSize(), true, false),
                    true))
        .filter(shape -> hasMany(DType.BF16, shape.headSize(), false, false))
        .distinct()
        .toJavaList();
  }

  private boolean hasMany(DType dtype, int headSize, boolean window, boolean cap) {
    return Arrays.stream(ModuleKey.Engine.values())
        .anyMatch(
            engine ->
                device().pack().has(new ModuleKey.Prefill(engine, dtype, headSize, window, cap)));
  }

  @Override
  public int repetitions() {
    return Math.max(1, Integer.getInteger("bifocal.conformance.scale", 2));
  }

  @Override
  public long seed() {
    return SEED;
  }

  @Override
  public int longest() {
    return SMALL ? 600 : 3000;
  }

  @Override
  public int alternatingSteps() {
    return SMALL ? 20 : 10_000;
  }
}

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

  /** Every shape of this project's kernels that there are modules for. */
  @Override
  public List<Shape> shapes() {
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
                    hasMany(known.headSize(), true),
                    true))
        .filter(shape -> hasMany(shape.headSize(), false))
        .distinct()
        .toJavaList();
  }

  private boolean hasMany(int headSize, boolean window) {
    return Arrays.stream(ModuleKey.Engine.values())
        .anyMatch(
            engine ->
                device()
                    .pack()
                    .has(new ModuleKey.Prefill(engine, DType.BF16, headSize, window, false)));
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

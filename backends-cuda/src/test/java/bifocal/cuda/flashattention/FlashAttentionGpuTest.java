package bifocal.cuda.flashattention;

import bifocal.core.error.BifocalException;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaDriver;
import bifocal.cuda.flashattention.ForwardKey.Sight;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.triton.TritonDevice;
import bifocal.cuda.triton.TritonHost;
import io.vavr.control.Validation;
import java.nio.file.Path;
import java.util.List;
import java.util.Objects;
import java.util.stream.Stream;
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
class FlashAttentionGpuTest implements FlashAttentionSuite {
  private static final long SEED = Long.getLong("bifocal.seed", System.currentTimeMillis());
  private static final boolean SMALL = Boolean.getBoolean("bifocal.gpu.small");

  private CudaContext context;
  private TritonDevice kernels;
  private @Nullable ForwardDevice device;

  @BeforeAll
  void open() {
    Path packs = Path.of(System.getProperty(TritonHost.PROPERTY, "no-packs"));
    context = CudaContext.primary(CudaDriver.load(), 0);
    kernels =
        TritonDevice.of(
            context,
            KernelPack.open(packs, context.device().capability())
                .fold(
                    refusal -> {
                      throw refusal.asException();
                    },
                    pack -> pack));
    Validation<PackRefusal, ForwardPack> forwards =
        ForwardPack.open(packs, context.device().capability());
    if (forwards.isInvalid()) {
      kernels.close();
      context.close();
      throw new TestAbortedException(forwards.getError().line());
    }
    device = new ForwardDevice(kernels, forwards.get());
    System.out.println(context.device() + ", seed " + SEED);
  }

  @AfterAll
  void close() {
    if (device == null) {
      return;
    }
    kernels.close();
    try {
      context.close();
    } catch (BifocalException inUse) {
      throw new AssertionError("something is left open in the context", inUse);
    }
  }

  @Override
  public ForwardDevice device() {
    return Objects.requireNonNull(device);
  }

  @Override
  public List<ForwardKey> shapes() {
    return device()
        .pack()
        .modules()
        .keySet()
        .filter(key -> key.sight() == Sight.CAUSAL)
        .filter(key -> Stream.of(Sight.values()).map(key::with).allMatch(device().pack()::has))
        .toJavaList();
  }

  /** The packs need not have {@code TRITON_ATTN}'s kernels for all shapes of the forwards. */
  @Override
  public void cannotRun(String why) {
    throw new TestAbortedException(why);
  }

  @Override
  public int repetitions() {
    return 4 * Math.max(1, Integer.getInteger("bifocal.conformance.scale", 1));
  }

  @Override
  public long seed() {
    return SEED;
  }

  @Override
  public int alternatingSteps() {
    return SMALL ? 20 : 10_000;
  }

  @Override
  public int longest() {
    return SMALL ? 600 : 3000;
  }
}

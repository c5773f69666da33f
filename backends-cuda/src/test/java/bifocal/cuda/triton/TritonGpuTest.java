package bifocal.cuda.triton;

import bifocal.core.error.BifocalException;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaDriver;
import bifocal.cuda.pack.KernelPack;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

/**
 * The suite on a GPU, over the pack that {@code -Dbifocal.cuda.packs} names. {@code
 * -Dbifocal.seed=N} repeats a run, {@code -Dbifocal.conformance.scale=N} makes it N times as long.
 */
@Tag("gpu")
@TestInstance(Lifecycle.PER_CLASS)
class TritonGpuTest implements TritonSuite, TritonStepSuite {
  private static final long SEED = Long.getLong("bifocal.seed", System.currentTimeMillis());

  /** Whether a checker makes everything slow. */
  private static final boolean SMALL = Boolean.getBoolean("bifocal.gpu.small");

  private CudaContext context;
  private TritonDevice device;

  @BeforeAll
  void open() {
    context = CudaContext.primary(CudaDriver.load(), 0);
    device =
        TritonDevice.of(
            context,
            KernelPack.open(packs(), context.device().capability())
                .fold(
                    refusal -> {
                      throw refusal.asException();
                    },
                    pack -> pack));
    System.out.println(context.device() + ", " + context.driver() + ", seed " + SEED);
  }

  static Path packs() {
    String named = System.getProperty(TritonHost.PROPERTY);
    if (named == null) {
      throw new AssertionError("run with -D" + TritonHost.PROPERTY + "=DIRECTORY");
    }
    return Path.of(named);
  }

  @AfterAll
  void close() {
    device.close();
    try {
      context.close();
    } catch (BifocalException inUse) {
      throw new AssertionError("something is left open in the context", inUse);
    }
  }

  @Override
  public TritonDevice device() {
    return device;
  }

  @Override
  public int repetitions() {
    return Math.max(1, Integer.getInteger("bifocal.conformance.scale", 1));
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
  public int shapes() {
    return Integer.getInteger("bifocal.gpu.shapes", Integer.MAX_VALUE);
  }

  @Override
  public long elementsOfLargeCache() {
    return SMALL ? 0 : (1L << 32) + (1L << 24);
  }

  @Override
  public int alternatingSteps() {
    return SMALL ? 20 : 10_000;
  }
}

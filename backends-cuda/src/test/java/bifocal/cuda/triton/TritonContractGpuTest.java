package bifocal.cuda.triton;

import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaDriver;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.triton.TritonContract.Kind;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;

/**
 * The contract of every backend on a GPU, over the pack that {@code -Dbifocal.cuda.packs} names;
 * the profile {@code conformance} has the kernels for all of it.
 */
@Tag("gpu")
@TestInstance(Lifecycle.PER_CLASS)
class TritonContractGpuTest extends TritonBackendContract {
  private CudaContext context;
  private TritonDevice device;

  @BeforeAll
  void open() {
    context = CudaContext.primary(CudaDriver.load(), 0);
    device =
        TritonDevice.of(
            context,
            KernelPack.open(TritonGpuTest.packs(), context.device().capability())
                .fold(
                    refusal -> {
                      throw refusal.asException();
                    },
                    pack -> pack));
  }

  @AfterAll
  void close() {
    device.close();
    context.close();
  }

  @Override
  TritonDevice device() {
    return device;
  }

  @Nested
  final class General extends Contract {
    @Override
    Kind kind() {
      return Kind.GENERAL;
    }
  }

  @Nested
  final class Causal extends Contract {
    @Override
    Kind kind() {
      return Kind.CAUSAL;
    }
  }

  @Nested
  final class Pair extends Contract {
    @Override
    Kind kind() {
      return Kind.LOWERED;
    }
  }
}

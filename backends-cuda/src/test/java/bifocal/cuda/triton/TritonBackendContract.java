package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.conformance.AttentionBackendContract;
import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.cuda.pack.Specialisation;
import bifocal.cuda.triton.TritonContract.Kind;
import io.vavr.collection.HashSet;
import java.util.stream.Stream;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * The contract of every backend for {@code TRITON_ATTN}, its causal child or a pair of them. Layers
 * that the pack has no kernels for are left out.
 */
abstract class TritonBackendContract {
  /** A device with a pack. */
  abstract TritonDevice device();

  /** The contract of one kind of backend. */
  abstract class Contract extends AttentionBackendContract {
    abstract Kind kind();

    @Override
    public AttentionBackend<?> backend() {
      return TritonContract.backend(kind(), TritonHost.with(device()));
    }

    @Override
    public DeviceProfile profile() {
      return device().context().device().profile(HashSet.empty());
    }

    @Override
    public TestDevice openDevice() {
      return new CudaTestDevice(device().context(), true);
    }

    /** Device memory has no pages that could be guarded. */
    @Override
    public TestDevice openGuardedDevice() {
      return openDevice();
    }

    /** Into fp32 where the pack has kernels for it; else it is refused. */
    @Override
    @TestFactory
    public Stream<DynamicTest> everyDeclaredTypeOfQueriesIntoFp32() {
      return super.everyDeclaredTypeOfQueriesIntoFp32()
          .map(
              test ->
                  widens(test.getDisplayName())
                      ? test
                      : dynamicTest(test.getDisplayName() + ", refused", () -> isRefused(test)));
    }

    private boolean widens(String layer) {
      return layer.startsWith(DType.FP32.toString())
          || device()
              .pack()
              .manifest()
              .kernels()
              .keySet()
              .exists(
                  kernel ->
                      kernel instanceof Specialisation.Attention attention
                          && attention.wide()
                          && layer.startsWith(attention.dtype().toString()));
    }

    private static void isRefused(DynamicTest test) {
      assertThatThrownBy(test.getExecutable()::execute)
          .asInstanceOf(InstanceOfAssertFactories.type(BifocalException.class))
          .extracting(BifocalException::code)
          .isEqualTo(ErrorCode.DTYPE_MISMATCH);
    }
  }
}

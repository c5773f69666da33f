package bifocal.cuda.flashinfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaContext;
import bifocal.tvm.Any;
import bifocal.tvm.TvmModule;
import org.junit.jupiter.api.Test;

/** What goes wrong inside of a module that works on the device, and that the process goes on. */
interface DeviceModuleSuite {
  /** Bytes that a module asks for. */
  int WANTED = 8 << 20;

  CudaContext context();

  /** The module, which found the driver. */
  TvmModule module();

  /** A kernel that the driver loads. */
  byte[] kernel();

  /** Smallest block that memory is taken in. */
  long least();

  private Any call(String function, Any... arguments) {
    context().makeCurrent();
    return module().function(function).invoke(arguments);
  }

  @Test
  default void memoryThatTheDeviceLacksIsAnExceptionOfTheModuleThatAskedForIt() {
    assertThat(call("allocate", new Any.Int(WANTED))).isNotEqualTo(new Any.Int(0));
    try (FullDevice full = new FullDevice(context(), least())) {
      assertThat(full.taken()).isGreaterThan(WANTED);

      assertThatThrownBy(() -> call("allocate", new Any.Int(WANTED)))
          .satisfies(refused(ErrorCode.NATIVE_FAILED))
          .hasMessageContaining("allocating memory failed with error CUDA_ERROR_OUT_OF_MEMORY");
    }
    assertThat(call("allocate", new Any.Int(WANTED))).isNotEqualTo(new Any.Int(0));
  }

  @Test
  default void aKernelFromJavaIsLoadedAndWhatJavaThrowsIsTheCause() {
    Any[] asked = {new Any.Text("kernels/one.cubin"), new Any.Text("00")};
    byte[] kernel = kernel();
    module().serveCubins((_, _) -> kernel);
    assertThat(call("load", asked)).isEqualTo(new Any.Int(kernel.length));

    IllegalStateException thrown = new IllegalStateException("the folder is gone");
    module()
        .serveCubins(
            (_, _) -> {
              throw thrown;
            });
    assertThatThrownBy(() -> call("load", asked))
        .satisfies(refused(ErrorCode.NATIVE_FAILED))
        .hasMessageContaining("Failed to load cubin")
        .hasCause(thrown);

    module().serveCubins((_, _) -> kernel);
    assertThat(call("load", asked)).isEqualTo(new Any.Int(kernel.length));
  }

  private static java.util.function.Consumer<Throwable> refused(ErrorCode code) {
    return thrown ->
        assertThat(thrown)
            .isInstanceOfSatisfying(
                BifocalException.class, failure -> assertThat(failure.code()).isEqualTo(code));
  }
}

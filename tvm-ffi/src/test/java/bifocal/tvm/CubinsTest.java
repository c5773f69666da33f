package bifocal.tvm;

import static bifocal.tvm.LoadedRuntime.cpuModule;
import static bifocal.tvm.LoadedRuntime.runtime;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.tvm.ffi.NativeLibraries;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** Modules that ask for the code of kernels while they run. */
final class CubinsTest {
  private static final Any NAME = new Any.Text("folder/kernel.cubin");
  private static final Any HASH = new Any.Text("0123abcd");

  private static TvmModule module() {
    return runtime().open(NativeLibraries.require("libcubin_module.so"));
  }

  private static Any call(String function) {
    return module().function(function).invoke(NAME, HASH);
  }

  @Test
  void aModuleTellsWhetherItAsks() {
    assertThat(module().asksForCubins()).isTrue();
    assertThat(cpuModule().asksForCubins()).isFalse();
    assertThatThrownBy(() -> cpuModule().serveCubins((_, _) -> new byte[0]))
        .isInstanceOfSatisfying(
            BifocalException.class,
            failure -> assertThat(failure.code()).isEqualTo(ErrorCode.NATIVE_MISSING))
        .hasMessageContaining("FlashInferSetCubinCallback");
  }

  @Test
  void javaIsAskedByNameAndHashAndItsBytesArrive() {
    List<String> asked = new ArrayList<>();
    module()
        .serveCubins(
            (name, sha256) -> {
              asked.add(name + " " + sha256);
              return new byte[1000];
            });

    assertThat(call("load")).isEqualTo(new Any.Int(1000));
    assertThat(asked).containsExactly("folder/kernel.cubin 0123abcd");
  }

  @Test
  void aFailureOfJavaIsTheCauseOfTheModulesOwn() {
    IllegalStateException thrown = new IllegalStateException("the folder is gone");
    module()
        .serveCubins(
            (_, _) -> {
              throw thrown;
            });

    assertThatThrownBy(() -> call("load"))
        .isInstanceOfSatisfying(
            BifocalException.class,
            failure -> assertThat(failure.code()).isEqualTo(ErrorCode.NATIVE_FAILED))
        .hasMessageContaining("no code for folder/kernel.cubin")
        .hasCause(thrown);

    module().serveCubins((_, _) -> new byte[7]);
    assertThat(call("load")).isEqualTo(new Any.Int(7));
  }

  @Test
  void aModuleThatGoesOnWithoutCodeFailsAllTheSame() {
    StackOverflowError thrown = new StackOverflowError("deep");
    module()
        .serveCubins(
            (_, _) -> {
              throw thrown;
            });

    assertThatThrownBy(() -> call("careless"))
        .hasMessageContaining("went on after a callback failed")
        .hasCause(thrown);
  }

  @Test
  void theCodeOfTheCallBeforeIsNotTakenForThisOne() {
    module()
        .serveCubins(
            (_, sha256) -> {
              if (sha256.equals("0123abcd")) {
                return new byte[12];
              }
              throw new IllegalArgumentException("another hash");
            });
    assertThat(call("load")).isEqualTo(new Any.Int(12));

    assertThatThrownBy(() -> module().function("load").invoke(NAME, new Any.Text("ffff")))
        .hasMessageContaining("no code for");
  }

  @Test
  void aThreadOfTheModuleMayAsk() {
    module().serveCubins((_, _) -> new byte[3]);

    assertThat(call("elsewhere")).isEqualTo(new Any.Int(3));
  }
}

package bifocal.tvm;

import static bifocal.tvm.LoadedRuntime.call;
import static bifocal.tvm.LoadedRuntime.cpuModule;
import static bifocal.tvm.LoadedRuntime.runtime;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.tvm.ffi.CallbackStubs;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Functions in Java, called by native code. */
final class CallbacksTest {
  @BeforeAll
  static void theModuleIsHere() {
    assertThat(cpuModule().functions()).isNotEmpty();
  }

  @Test
  void nativeCodeCallsJava() {
    try (FunctionObject twice =
        runtime()
            .function(
                "twice",
                arguments -> new Any.Int(2 * arguments.head().ints().get().head().longValue()))) {
      assertThat(call("apply", twice, Any.Shape.of(21))).isEqualTo(new Any.Int(42));
    }
  }

  static Vector<Any> values() {
    return Vector.of(
        new Any.None(),
        new Any.Int(3),
        new Any.Bool(true),
        new Any.Real(0.5),
        new Any.Opaque(77),
        new Any.ElementType(new DlType(2, 32, 1)),
        new Any.OnDevice(new DlDevice(2, 1)),
        new Any.Text("small"),
        new Any.Text("a text that needs an object"),
        Any.Shape.of(2, 3),
        Any.Array.of(new Any.Int(1), new Any.Text("two")));
  }

  @ParameterizedTest
  @MethodSource("values")
  void aValueComesBackAsItWent(Any value) {
    try (FunctionObject same = runtime().function("same", arguments -> arguments.head())) {
      assertThat(call("apply", same, value)).isEqualTo(value);
    }
  }

  @Test
  void anExceptionIsTheCauseOfWhatTheCallerSees() {
    IllegalStateException thrown = new IllegalStateException("the pool is empty");
    try (FunctionObject failing =
        runtime()
            .function(
                "failing",
                _ -> {
                  throw thrown;
                })) {
      assertThatThrownBy(() -> call("apply", failing, new Any.None()))
          .isInstanceOfSatisfying(
              BifocalException.class,
              failure -> assertThat(failure.code()).isEqualTo(ErrorCode.NATIVE_FAILED))
          .hasMessageContaining("IllegalStateException: the pool is empty")
          .hasCause(thrown);
    }
  }

  @Test
  void anErrorOfTheVirtualMachineDoesNotEndIt() {
    try (FunctionObject endless = runtime().function("endless", _ -> new Any.Int(endless(1)))) {
      assertThatThrownBy(() -> call("apply", endless, new Any.None()))
          .hasMessageContaining("StackOverflowError")
          .hasCauseInstanceOf(StackOverflowError.class);
    }
    assertThat(call("add", new Any.Int(1), new Any.Int(1))).isEqualTo(new Any.Int(2));
  }

  @SuppressWarnings("InfiniteRecursion")
  private static long endless(long depth) {
    return 1 + endless(depth + 1);
  }

  @Test
  void aLaterFailureHasNotTheCauseOfAnEarlierOne() {
    try (FunctionObject failing =
        runtime()
            .function(
                "failing",
                _ -> {
                  throw new IllegalStateException("first");
                })) {
      assertThatThrownBy(() -> call("apply", failing, new Any.None()))
          .hasMessageContaining("first");
    }
    assertThatThrownBy(() -> call("fail", new Any.Text("ValueError"), new Any.Text("second")))
        .hasMessageContaining("second")
        .hasNoCause();
  }

  @Test
  void aTensorIsLentOrHeldForTheCall() {
    List<Any> seen = new ArrayList<>();
    try (Arena arena = Arena.ofConfined();
        TensorObject object =
            runtime().tensor(TensorView.ofHost(arena.allocate(24, 16), DType.FP32, 2, 3));
        FunctionObject look =
            runtime()
                .function(
                    "look",
                    arguments -> {
                      seen.add(arguments.head());
                      return Any.Shape.of(((TensorObject) arguments.head()).view().shape());
                    })) {
      assertThat(call("apply", look, object)).isEqualTo(Any.Shape.of(2, 3));
      assertThat(((TensorObject) seen.getFirst()).closed()).isTrue();
      assertThat(object.references()).isEqualTo(1);
    }
  }

  @Test
  void aTensorIsReturned() {
    try (Arena arena = Arena.ofConfined()) {
      TensorView view = TensorView.ofHost(arena.allocate(24, 16), DType.FP32, 2, 3);
      try (FunctionObject give = runtime().function("give", _ -> runtime().tensor(view));
          TensorObject given = (TensorObject) call("apply", give, new Any.None())) {
        assertThat(given.view().address()).isEqualTo(view.address());
        assertThat(given.references()).isEqualTo(1);
      }
    }
  }

  @Test
  void aFunctionIsForgottenWithItsLastReference() {
    int before = CallbackStubs.known();
    FunctionObject function = runtime().function("short-lived", _ -> new Any.None());
    assertThat(CallbackStubs.known()).isEqualTo(before + 1);
    try (Arguments arguments = runtime().arguments(1).object(0, function)) {
      function.close();
      assertThat(CallbackStubs.known()).isEqualTo(before + 1);
      arguments.none(0);
    }
    assertThat(CallbackStubs.known()).isEqualTo(before);
  }

  @Test
  void argumentsOfACallThatIsUnderWayAreNotChanged() {
    ModuleFunction apply = cpuModule().function("apply");
    try (Arguments arguments = runtime().arguments(2);
        FunctionObject meddling =
            runtime()
                .function(
                    "meddling",
                    _ -> {
                      arguments.none(0);
                      return new Any.None();
                    })) {
      arguments.object(0, meddling).none(1);

      assertThatThrownBy(() -> apply.call(arguments))
          .hasMessageContaining("under way")
          .cause()
          .isInstanceOfSatisfying(
              BifocalException.class,
              refused -> assertThat(refused.code()).isEqualTo(ErrorCode.IN_USE));
    }
  }
}

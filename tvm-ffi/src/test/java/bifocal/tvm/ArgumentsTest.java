package bifocal.tvm;

import static bifocal.tvm.LoadedRuntime.cpuModule;
import static bifocal.tvm.LoadedRuntime.runtime;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.device.Device;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import com.sun.management.ThreadMXBean;
import java.lang.foreign.Arena;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executors;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** Arguments are made once, hold what they name, and let go of it once. */
final class ArgumentsTest {
  private static final DeviceStream STREAM =
      DeviceStream.of(new Device(Platform.CUDA, 1), 0xC0FFEE);

  @BeforeAll
  static void theModuleIsHere() {
    assertThat(cpuModule().functions()).isNotEmpty();
  }

  @Test
  void theyStayUntilTheyAreSetAgain() {
    ModuleFunction add = cpuModule().function("add");
    try (Arguments arguments = runtime().arguments(2)) {
      add.call(arguments.integer(0, 40).integer(1, 1));
      assertThat(arguments.integerResult()).isEqualTo(41);
      add.call(arguments.integer(1, 2));
      assertThat(arguments.integerResult()).isEqualTo(42);
    }
  }

  @Test
  void settingAndCallingAllocatesNothing() {
    TvmRuntime runtime = runtime();
    ModuleFunction scale = cpuModule().function("scale");
    ModuleFunction references = cpuModule().function("references");
    try (Arena arena = Arena.ofConfined();
        Arguments scaling = runtime.arguments(3);
        Arguments counting = runtime.arguments(1)) {
      TensorView x = TensorView.ofHost(arena.allocate(64, 16), DType.FP32, 4, 4);
      TensorView rows = x.rows(1, 3);
      DlTensor lent = DlTensor.of(x);
      try (TensorObject object = runtime.tensor(x);
          TensorObject other = runtime.tensor(x)) {
        Runnable step =
            () -> {
              lent.describe(x);
              scaling.tensor(0, lent).real(1, 1.5).tensor(2, lent);
              scale.call(scaling, STREAM);
              lent.describe(rows);
              scale.call(scaling);
              references.call(counting.object(0, object));
              references.call(counting.object(0, other));
              if (counting.integerResult() != 3) {
                throw new AssertionError(counting.integerResult());
              }
            };
        assertThat(allocatedBy(step)).isZero();
      }
    }
  }

  /**
   * Bytes that a thousand runs allocate, the least of a few tries: compilers finish when they do.
   */
  private static long allocatedBy(Runnable step) {
    ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    for (int i = 0; i < 20_000; i++) {
      step.run();
    }
    long least = Long.MAX_VALUE;
    for (int attempt = 0; attempt < 20 && least > 0; attempt++) {
      long before = threads.getCurrentThreadAllocatedBytes();
      for (int i = 0; i < 1_000; i++) {
        step.run();
      }
      least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
    }
    return least;
  }

  @Test
  void anObjectIsHeldUntilTheArgumentIsSetAgain() {
    try (Arena arena = Arena.ofConfined();
        Arguments arguments = runtime().arguments(2);
        TensorObject object = runtime().tensor(view(arena))) {
      arguments.object(0, object).object(1, object).object(1, object);
      assertThat(object.references()).isEqualTo(3);
      arguments.none(0);
      assertThat(object.references()).isEqualTo(2);
      arguments.integer(1, 3);
      assertThat(object.references()).isEqualTo(1);
    }
  }

  @Test
  void closingThemLetsGoOfWhatTheyHoldOnce() {
    try (Arena arena = Arena.ofConfined();
        TensorObject object = runtime().tensor(view(arena))) {
      Arguments arguments = runtime().arguments(1).object(0, object);
      arguments.close();
      arguments.close();
      assertThat(object.references()).isEqualTo(1);
    }
  }

  @Test
  void anObjectThatWasClosedInBetweenIsStillThereForTheCall() {
    ModuleFunction references = cpuModule().function("references");
    try (Arena arena = Arena.ofConfined();
        Arguments arguments = runtime().arguments(1)) {
      TensorObject object = runtime().tensor(view(arena));
      arguments.object(0, object);
      object.close();
      references.call(arguments);
      assertThat(arguments.integerResult()).isEqualTo(2);
    }
  }

  @Test
  void aResultIsReleasedOnceWhetherItIsTakenOrNot() {
    ModuleFunction echo = cpuModule().function("echo");
    ModuleFunction add = cpuModule().function("add");
    try (Arena arena = Arena.ofConfined();
        TensorObject object = runtime().tensor(view(arena))) {
      try (Arguments arguments = runtime().arguments(1).object(0, object)) {
        echo.call(arguments);
        assertThat(object.references()).as("ours, argument, result").isEqualTo(3);
        echo.call(arguments);
        assertThat(object.references()).as("the result before is gone").isEqualTo(3);
        ObjectReference taken = arguments.takeResult();
        echo.call(arguments);
        assertThat(object.references()).as("one taken, one new").isEqualTo(4);
        taken.close();
        taken.close();
        assertThat(object.references()).isEqualTo(3);
        assertThatThrownBy(() -> add.call(arguments)).satisfies(refused(ErrorCode.NATIVE_FAILED));
        assertThat(object.references()).as("a failure leaves no result").isEqualTo(2);
        echo.call(arguments);
      }
      assertThat(object.references()).isEqualTo(1);
    }
  }

  @Test
  void anArrayGoesFromOneCallIntoTheNextAsItIs() {
    TvmModule module = cpuModule();
    try (Arguments planning = runtime().arguments(1).integer(0, 4)) {
      module.function("plan").call(planning);
      try (ObjectReference plan = planning.takeResult();
          Arguments summing = runtime().arguments(1).object(0, plan)) {
        module.function("sum").call(summing);
        assertThat(summing.integerResult()).isEqualTo(14);
        assertThat(((OpaqueObject) plan).value()).isEqualTo(Any.Array.ofInts(0, 1, 4, 9));
      }
    }
  }

  @Test
  void aNumberIsNoObjectAndAnObjectNoNumber() {
    try (Arguments arguments = runtime().arguments(1).integer(0, 4)) {
      cpuModule().function("or_seven").call(arguments);
      assertThatThrownBy(arguments::takeResult).satisfies(refused(ErrorCode.DTYPE_MISMATCH));
      cpuModule().function("plan").call(arguments);
      assertThatThrownBy(arguments::integerResult).satisfies(refused(ErrorCode.DTYPE_MISMATCH));
    }
  }

  @Test
  void aStreamIsSetForTheCallAndForgottenAfterwards() {
    ModuleFunction stream = cpuModule().function("stream");
    try (Arguments arguments = runtime().arguments(2).integer(0, 2).integer(1, 1)) {
      stream.call(arguments, STREAM);
      assertThat(arguments.result()).isEqualTo(new Any.Opaque(0xC0FFEE));
      assertThat(runtime().stream(STREAM.device())).isZero();
      stream.call(arguments);
      assertThat(arguments.result()).isIn(new Any.None(), new Any.Opaque(0));
    }
  }

  @Test
  void aStreamIsForgottenAfterAFailureToo() {
    try (Arguments none = runtime().arguments(0)) {
      assertThatThrownBy(() -> cpuModule().function("add").call(none, STREAM))
          .satisfies(refused(ErrorCode.NATIVE_FAILED));
    }
    assertThat(runtime().stream(STREAM.device())).isZero();
  }

  @Test
  void theyBelongToTheThreadThatMadeThem() {
    ModuleFunction add = cpuModule().function("add");
    try (Arguments arguments = runtime().arguments(2);
        var threads = Executors.newSingleThreadExecutor()) {
      assertThatThrownBy(
              () -> CompletableFuture.runAsync(() -> add.call(arguments), threads).join())
          .cause()
          .satisfies(refused(ErrorCode.WRONG_THREAD));
    }
  }

  @Test
  void aVirtualThreadMakesNone() {
    TvmRuntime runtime = runtime();
    try (var threads = Executors.newVirtualThreadPerTaskExecutor()) {
      assertThatThrownBy(
              () -> CompletableFuture.runAsync(() -> runtime.arguments(1), threads).join())
          .cause()
          .satisfies(refused(ErrorCode.WRONG_THREAD));
    }
  }

  @Test
  void closedOnesAreRefusedBeforeTheCall() {
    ModuleFunction add = cpuModule().function("add");
    Arguments arguments = runtime().arguments(2);
    arguments.close();

    assertThatThrownBy(() -> add.call(arguments)).satisfies(refused(ErrorCode.CLOSED));
    assertThatThrownBy(() -> arguments.integer(0, 1)).satisfies(refused(ErrorCode.CLOSED));
    assertThatThrownBy(arguments::result).satisfies(refused(ErrorCode.CLOSED));
  }

  @Test
  void aClosedObjectIsRefused() {
    try (Arena arena = Arena.ofConfined();
        Arguments arguments = runtime().arguments(1)) {
      TensorObject object = runtime().tensor(view(arena));
      object.close();

      assertThatThrownBy(() -> arguments.object(0, object)).satisfies(refused(ErrorCode.CLOSED));
      assertThatThrownBy(object::references).satisfies(refused(ErrorCode.CLOSED));
    }
  }

  @Test
  void aWrongNumberOfArgumentsIsRefusedInTheLibrarysWords() {
    assertThatThrownBy(() -> LoadedRuntime.call("add", new Any.Int(1)))
        .satisfies(refused(ErrorCode.NATIVE_FAILED))
        .hasMessageContainingAll("function add of libcpu_module.so", "TypeError", "2", "1");
  }

  @Test
  void anotherTypeOfArgumentIsRefusedInTheLibrarysWords() {
    assertThatThrownBy(() -> LoadedRuntime.call("add", new Any.Int(1), new Any.Text("two")))
        .satisfies(refused(ErrorCode.NATIVE_FAILED))
        .hasMessageContainingAll("TypeError", "int", "#1");
  }

  @Test
  void anErrorOfTheModuleKeepsItsKindAndText() {
    assertThatThrownBy(
            () ->
                LoadedRuntime.call(
                    "fail", new Any.Text("MemoryError"), new Any.Text("device out of memory")))
        .satisfies(refused(ErrorCode.NATIVE_FAILED))
        .hasMessageContaining("MemoryError: device out of memory");
  }

  private static TensorView view(Arena arena) {
    return TensorView.ofHost(arena.allocate(16, 16), DType.FP32, 4);
  }

  private static Consumer<Throwable> refused(ErrorCode code) {
    return thrown ->
        assertThat(thrown)
            .isInstanceOfSatisfying(
                BifocalException.class, exception -> assertThat(exception.code()).isEqualTo(code));
  }
}

package bifocal.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.fake.FakeCuda;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Each call of the driver fails once, in a program that uses everything. */
final class DriverFailureTest {
  private static final int ILLEGAL_STATE = 401;
  private static final int ILLEGAL_ADDRESS = 700;

  private final FakeCuda fake = FakeCuda.resetOrSkip();

  /** In the primary context, which is released at the end. */
  private void primary(Consumer<CudaContext> opened) {
    try (CudaContext context = CudaContext.primary(fake.driver(), 0)) {
      opened.accept(context);
      Scenario.everything(context);
    }
  }

  /** In a context of the host, which stays, with a stream of the host. */
  private void adopted(long hostContext, long hostStream) {
    try (CudaContext context = CudaContext.adopt(fake.driver(), hostContext)) {
      CudaStream.adopt(context, hostStream).synchronize();
      CudaContext.adoptCurrent(fake.driver()).close();
    }
  }

  private Seq<String> calls(Runnable program) {
    fake.driver();
    fake.reset();
    program.run();
    return fake.calls();
  }

  @Test
  void theProgramCallsEveryFunctionOfTheBindingAndLeavesNothing() throws IOException {
    Seq<String> called = calls(() -> primary(context -> {}));
    assertThat(fake.live().toJavaMap()).isEmpty();
    fake.reset();
    long context = fake.hostContext(0);
    adopted(context, fake.hostStream(context));

    assertThat(called.appendAll(fake.calls()).appendAll(Vector.of("cuInit", "cuDriverGetVersion")))
        .containsAll(fake.exported());
  }

  @TestFactory
  Stream<DynamicTest> aFailedCallIsTypedAndNothingLeaks() {
    Seq<String> calls = calls(() -> primary(context -> {}));
    return calls
        .zipWithIndex()
        .map(call -> dynamicTest(call._2 + " " + call._1, () -> failsCleanly(call._2, call._1)))
        .toJavaStream();
  }

  private void failsCleanly(int index, String symbol) {
    fake.reset();
    fake.failAt(index, ILLEGAL_STATE);

    Throwable thrown = catchThrowable(() -> primary(context -> {}));

    assertThat(thrown).isInstanceOf(BifocalException.class);
    assertThat(((BifocalException) thrown).code()).isEqualTo(ErrorCode.NATIVE_FAILED);
    assertThat(thrown)
        .hasMessageContainingAll(
            symbol.replaceFirst("_v2$", ""),
            "401 CUDA_ERROR_ILLEGAL_STATE",
            "the operation cannot be performed in the present state");
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  @TestFactory
  Stream<DynamicTest> aFaultLosesTheDeviceAndTheDriverIsAskedNothingMore() {
    Seq<String> calls = calls(() -> primary(context -> {}));
    int first = calls.indexOf("cuCtxSetCurrent");
    return calls
        .zipWithIndex()
        .drop(first)
        .map(call -> dynamicTest(call._2 + " " + call._1, () -> losesTheDevice(call._2)))
        .toJavaStream();
  }

  private void losesTheDevice(int index) {
    fake.reset();
    fake.failAt(index, ILLEGAL_ADDRESS);
    List<CudaContext> seen = new ArrayList<>();

    Throwable thrown = catchThrowable(() -> primary(seen::add));

    assertThat(((BifocalException) thrown).code()).isEqualTo(ErrorCode.DEVICE_LOST);
    assertThat(thrown)
        .hasMessageContainingAll("700 CUDA_ERROR_ILLEGAL_ADDRESS", "start a new process");
    assertThat(fake.calls().size()).isEqualTo(index + 1);
    seen.forEach(context -> assertThat(context.open()).isEmpty());
  }

  @TestFactory
  Stream<DynamicTest> aFailedCallLeavesTheHostsContextAlone() {
    Seq<String> calls =
        calls(
            () -> {
              long context = fake.hostContext(0);
              adopted(context, fake.hostStream(context));
            });
    return calls
        .zipWithIndex()
        .map(call -> dynamicTest(call._2 + " " + call._1, () -> leavesTheHostsAlone(call._2)))
        .toJavaStream();
  }

  private void leavesTheHostsAlone(int index) {
    fake.reset();
    long context = fake.hostContext(0);
    long stream = fake.hostStream(context);
    fake.failAt(index, ILLEGAL_STATE);

    Throwable thrown = catchThrowable(() -> adopted(context, stream));

    assertThat(((BifocalException) thrown).code()).isEqualTo(ErrorCode.NATIVE_FAILED);
    assertThat(fake.live().toJavaMap()).containsOnlyKeys("context", "stream");
  }
}

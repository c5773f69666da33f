package bifocal.tvm;

import static bifocal.tvm.LoadedRuntime.call;
import static bifocal.tvm.LoadedRuntime.cpuModule;
import static bifocal.tvm.LoadedRuntime.runtime;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Random;
import java.util.function.Consumer;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;

/** Tensors go to native code as they lie, lent or as objects. */
final class TensorsTest {
  private final Arena arena = Arena.ofConfined();

  @BeforeAll
  static void theModuleIsHere() {
    assertThat(cpuModule().functions()).isNotEmpty();
  }

  @AfterEach
  void close() {
    arena.close();
  }

  @RepeatedTest(20)
  void aMatrixIsScaledWhateverItsStrides() {
    long seed = new Random().nextLong();
    Random random = new Random(seed);
    int rows = random.nextInt(1, 6);
    int columns = random.nextInt(1, 6);
    int padding = random.nextInt(3);
    MemorySegment data = arena.allocate(ValueLayout.JAVA_FLOAT, (rows + 1L) * (columns + padding));
    for (long i = 0; i < data.byteSize() / 4; i++) {
      data.setAtIndex(ValueLayout.JAVA_FLOAT, i, random.nextFloat());
    }
    TensorView matrix =
        TensorView.of(
                data,
                DType.FP32,
                Device.HOST,
                new long[] {rows + 1, columns},
                new long[] {columns + padding, 1})
            .rows(1, rows + 1);
    MemorySegment transposed = arena.allocate(ValueLayout.JAVA_FLOAT, (long) rows * columns);
    TensorView out =
        TensorView.of(
            transposed, DType.FP32, Device.HOST, new long[] {rows, columns}, new long[] {1, rows});

    call("scale", new Any.Lent(matrix), new Any.Real(2), new Any.Lent(out));

    for (int i = 0; i < rows; i++) {
      for (int j = 0; j < columns; j++) {
        float from = data.getAtIndex(ValueLayout.JAVA_FLOAT, (i + 1L) * (columns + padding) + j);
        assertThat(transposed.getAtIndex(ValueLayout.JAVA_FLOAT, (long) j * rows + i))
            .as("seed %d, row %d, column %d", seed, i, j)
            .isEqualTo(2 * from);
      }
    }
  }

  @Test
  void shapeStridesTypeAndDeviceArrive() {
    Any.Lent tensor = new Any.Lent(zeros(DType.BF16, 2, 3, 4));

    assertThat(call("shape_of", tensor)).isEqualTo(Any.Shape.of(2, 3, 4));
    assertThat(call("strides_of", tensor)).isEqualTo(Any.Array.ofInts(12, 4, 1));
    assertThat(call("type_of", tensor)).isEqualTo(new Any.ElementType(new DlType(4, 16, 1)));
    assertThat(call("device_of", tensor)).isEqualTo(new Any.OnDevice(new DlDevice(1, 0)));
  }

  @Test
  void aTensorWithoutDimensionsHasStridesToo() {
    assertThat(call("strides_of", new Any.Lent(zeros(DType.FP32)))).isEqualTo(Any.Array.ofInts());
  }

  @Test
  void aDescriptionIsUsedForAnotherTensor() {
    DlTensor tensor = DlTensor.of(zeros(DType.FP32, 2, 3));
    ModuleFunction shapeOf = cpuModule().function("shape_of");
    try (Arguments arguments = runtime().arguments(1)) {
      arguments.tensor(0, tensor);
      shapeOf.call(arguments);
      assertThat(arguments.result()).isEqualTo(Any.Shape.of(2, 3));

      tensor.describe(zeros(DType.FP32, 7));
      shapeOf.call(arguments);
      assertThat(arguments.result()).isEqualTo(Any.Shape.of(7));
    }
  }

  @Test
  void aDescriptionHasRoomForAsManyDimensionsAsItsFirstTensor() {
    DlTensor tensor = DlTensor.of(zeros(DType.FP32, 2, 3));
    TensorView larger = zeros(DType.FP32, 1, 1, 1);

    assertThatThrownBy(() -> tensor.describe(larger)).satisfies(refused(ErrorCode.SHAPE_MISMATCH));
  }

  @Test
  void anotherElementTypeIsRefusedInTheModulesWords() {
    Any.Lent halves = new Any.Lent(zeros(DType.FP16, 2, 2));

    assertThatThrownBy(() -> call("scale", halves, new Any.Real(2), halves))
        .satisfies(refused(ErrorCode.NATIVE_FAILED))
        .hasMessageContainingAll("scale", "TypeError", "x must be float32");
  }

  @Test
  void anotherShapeIsRefusedInTheModulesWords() {
    Any.Lent small = new Any.Lent(zeros(DType.FP32, 2, 2));
    Any.Lent large = new Any.Lent(zeros(DType.FP32, 2, 3));

    assertThatThrownBy(() -> call("scale", small, new Any.Real(2), large))
        .satisfies(refused(ErrorCode.NATIVE_FAILED))
        .hasMessageContainingAll("ValueError", "x and out differ in shape");
  }

  @Test
  void aTensorInTheJavaHeapIsRefusedBeforeTheCall() {
    TensorView heap = TensorView.ofHost(MemorySegment.ofArray(new float[4]), DType.FP32, 4);

    assertThatThrownBy(() -> call("shape_of", new Any.Lent(heap)))
        .satisfies(refused(ErrorCode.UNSUPPORTED));
    assertThatThrownBy(() -> runtime().tensor(heap)).satisfies(refused(ErrorCode.UNSUPPORTED));
  }

  @Test
  void aTensorWhoseMemoryIsGoneIsRefusedBeforeTheCall() {
    ModuleFunction shapeOf = cpuModule().function("shape_of");
    Arena shortLived = Arena.ofConfined();
    TensorView view = TensorView.ofHost(shortLived.allocate(16), DType.FP32, 4);
    try (Arguments arguments = runtime().arguments(1);
        TensorObject object = runtime().tensor(view)) {
      arguments.tensor(0, DlTensor.of(view));
      shapeOf.call(arguments);
      shortLived.close();

      assertThatThrownBy(() -> shapeOf.call(arguments)).satisfies(refused(ErrorCode.CLOSED));
      arguments.object(0, object);
      assertThatThrownBy(() -> shapeOf.call(arguments)).satisfies(refused(ErrorCode.CLOSED));
    }
  }

  @Test
  void aFunctionThatWantsAnObjectRefusesALentTensor() {
    Any.Lent lent = new Any.Lent(zeros(DType.FP32, 2));

    assertThatThrownBy(() -> call("is_present", lent))
        .satisfies(refused(ErrorCode.NATIVE_FAILED))
        .hasMessageContaining("TypeError");
  }

  @Test
  void aFunctionThatWantsAnObjectTakesOne() {
    try (TensorObject object = runtime().tensor(zeros(DType.FP32, 2))) {
      assertThat(call("is_present", object)).isEqualTo(new Any.Bool(true));
      assertThat(call("is_present", new Any.None())).isEqualTo(new Any.Bool(false));
    }
  }

  @Test
  void anObjectIsATensorWhereALentOneWouldDo() {
    try (TensorObject object = runtime().tensor(zeros(DType.INT8, 4, 5))) {
      assertThat(call("shape_of", object)).isEqualTo(Any.Shape.of(4, 5));
      assertThat(call("strides_of", object)).isEqualTo(Any.Array.ofInts(5, 1));
    }
  }

  @Test
  void nativeCodeMayHoldATensorLongerThanJava() {
    TensorView view = zeros(DType.FP32, 6, 7);
    try (TensorObject object = runtime().tensor(view)) {
      call("remember", object);
      assertThat(object.references()).isEqualTo(2);
    }
    try (TensorObject recalled = (TensorObject) call("recall")) {
      assertThat(recalled.view().shape()).containsExactly(6, 7);
      assertThat(recalled.view().address()).isEqualTo(view.address());
      call("forget");
      assertThat(recalled.references()).isEqualTo(1);
    }
  }

  @Test
  void rowsOfATensorAreDescribedWithoutATensorOfTheirOwn() {
    TensorView view = zeros(DType.FP32, 5, 3);
    TensorView doubled = zeros(DType.FP32, 3, 3);
    view.data().setAtIndex(ValueLayout.JAVA_FLOAT, 2 * 3 + 1, 7);
    DlTensor rows = DlTensor.of(view);

    rows.describeRows(view, 2, 3);

    try (Arguments arguments = runtime().arguments(3)) {
      arguments.tensor(0, rows).real(1, 2).tensor(2, DlTensor.of(doubled));
      cpuModule().function("scale").call(arguments);
    }
    assertThat(doubled.data().getAtIndex(ValueLayout.JAVA_FLOAT, 1)).isEqualTo(14);
    assertThatThrownBy(() -> rows.describeRows(view, 3, 3))
        .satisfies(refused(ErrorCode.SHAPE_MISMATCH));
  }

  private TensorView zeros(DType type, long... shape) {
    long elements = 1;
    for (long size : shape) {
      elements *= size;
    }
    return TensorView.ofHost(arena.allocate(elements * type.bytes(), 16), type, shape);
  }

  private static Consumer<Throwable> refused(ErrorCode code) {
    return thrown ->
        assertThat(thrown)
            .isInstanceOfSatisfying(
                BifocalException.class, exception -> assertThat(exception.code()).isEqualTo(code));
  }
}

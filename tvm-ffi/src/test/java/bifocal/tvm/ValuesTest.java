package bifocal.tvm;

import static bifocal.tvm.LoadedRuntime.call;
import static bifocal.tvm.LoadedRuntime.cpuModule;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Each kind of value goes into native code and comes out again. */
final class ValuesTest {
  @BeforeAll
  static void theModuleIsHere() {
    assertThat(cpuModule().functions()).isNotEmpty();
  }

  @ParameterizedTest
  @ValueSource(longs = {0, -1, Long.MAX_VALUE - 1, Long.MIN_VALUE})
  void integers(long value) {
    assertThat(call("add", new Any.Int(value), new Any.Int(1))).isEqualTo(new Any.Int(value + 1));
  }

  @Test
  void realNumbers() {
    assertThat(call("half", new Any.Real(-0.5))).isEqualTo(new Any.Real(-0.25));
  }

  @Test
  void anIntegerIsARealNumberWhereOneIsWanted() {
    assertThat(call("half", new Any.Int(3))).isEqualTo(new Any.Real(1.5));
  }

  @Test
  void truthValues() {
    assertThat(call("negate", new Any.Bool(true))).isEqualTo(new Any.Bool(false));
  }

  @Test
  void nothingIsAnAbsentOptional() {
    assertThat(call("or_seven", new Any.None())).isEqualTo(new Any.Int(7));
    assertThat(call("or_seven", new Any.Int(3))).isEqualTo(new Any.Int(3));
    assertThat(call("echo", new Any.None())).isEqualTo(new Any.None());
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "K", "seven c", "eight ch", "Grüße, 世界"})
  void texts(String text) {
    assertThat(call("echo", new Any.Text(text))).isEqualTo(new Any.Text(text));
    assertThat(call("greet", new Any.Text(text))).isEqualTo(new Any.Text("good morning, " + text));
  }

  @Test
  void aTextOfOneLetterComesBackWithoutAnObject() {
    assertThat(call("initial", new Any.Text("Bifocal"))).isEqualTo(new Any.Text("B"));
  }

  @Test
  void aTextWithACharacterZeroIsRefusedBeforeTheCall() {
    assertThatThrownBy(() -> call("greet", new Any.Text("a\0b")))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refused -> assertThat(refused.code()).isEqualTo(ErrorCode.INVALID_PARAMETER));
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 3, 300})
  void bytes(int length) {
    Vector<Byte> bytes = Vector.range(0, length).map(Integer::byteValue);

    assertThat(call("reversed", new Any.Bytes(bytes))).isEqualTo(new Any.Bytes(bytes.reverse()));
  }

  @Test
  void addresses() {
    assertThat(call("same", new Any.Opaque(0x1234_5678_9ABCL)))
        .isEqualTo(new Any.Opaque(0x1234_5678_9ABCL));
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void elementTypes(DType type) {
    Any.ElementType value = new Any.ElementType(DlType.of(type));

    assertThat(call("echo", value)).isEqualTo(value);
    assertThat(value.type().dtype()).isEqualTo(type);
  }

  @Test
  void devices() {
    Any.OnDevice host = new Any.OnDevice(DlDevice.of(Device.HOST));

    assertThat(call("echo", host)).isEqualTo(host);
    assertThat(call("echo", new Any.OnDevice(new DlDevice(2, 5))))
        .isEqualTo(new Any.OnDevice(new DlDevice(2, 5)));
  }

  @Test
  void shapes() {
    assertThat(call("volume", Any.Shape.of(2, 3, 4))).isEqualTo(new Any.Int(24));
    assertThat(call("echo", Any.Shape.of(5, 0))).isEqualTo(Any.Shape.of(5, 0));
    assertThat(call("volume", Any.Shape.of())).isEqualTo(new Any.Int(1));
  }

  @Test
  void arrays() {
    assertThat(call("sum", Any.Array.ofInts(1, 2, 39))).isEqualTo(new Any.Int(42));
    assertThat(call("plan", new Any.Int(4))).isEqualTo(Any.Array.ofInts(0, 1, 4, 9));
    assertThat(call("plan", new Any.Int(4)).ints())
        .isEqualTo(Option.some(Vector.of(0L, 1L, 4L, 9L)));
  }

  @Test
  void arraysInArrays() {
    Any.Array nested =
        Any.Array.of(
            new Any.None(),
            new Any.Text("a text that needs an object"),
            Any.Array.of(new Any.Bool(true), new Any.Real(2.5)));

    assertThat(call("echo", nested)).isEqualTo(nested);
  }

  @Test
  void errorsThatAreReturned() {
    assertThat(call("failure", new Any.Text("too warm")))
        .isInstanceOfSatisfying(
            Any.Failure.class,
            failure -> {
              assertThat(failure.kind()).isEqualTo("ValueError");
              assertThat(failure.message()).isEqualTo("too warm");
            });
  }

  @Test
  void functionsThatAreReturned() {
    try (FunctionObject adder = (FunctionObject) call("adder", new Any.Int(40))) {
      assertThat(adder.invoke(new Any.Int(2))).isEqualTo(new Any.Int(42));
    }
  }

  @Test
  void objectsOfTypesThatJavaDoesNotReadArePassedOn() {
    try (OpaqueObject counts = (OpaqueObject) call("counts")) {
      assertThat(call("count_of", counts, new Any.Text("two"))).isEqualTo(new Any.Int(2));
    }
  }
}

package bifocal.tvm;

import bifocal.core.tensor.TensorView;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * A value that goes into a TVM-FFI call or comes out of it. What Java can hold is copied; tensors,
 * functions and objects of other types stay where they are, and an {@link ObjectReference} holds
 * them until it is closed.
 */
public sealed interface Any {
  /** Nothing: an absent optional, or what a function returns that returns nothing. */
  record None() implements Any {}

  /** An integer. */
  record Int(long value) implements Any {}

  /** A truth value. */
  record Bool(boolean value) implements Any {}

  /** A floating-point number. */
  record Real(double value) implements Any {}

  /** An address that only the two sides of the call understand, such as a stream. */
  record Opaque(long address) implements Any {}

  /** An element type, of a tensor or not. */
  record ElementType(DlType type) implements Any {}

  /** A device. */
  record OnDevice(DlDevice device) implements Any {}

  /** A text. */
  record Text(String value) implements Any {}

  /** Bytes. */
  record Bytes(Seq<Byte> value) implements Any {}

  /** The sizes of a tensor, on their own. */
  record Shape(Seq<Long> sizes) implements Any {

    /** A shape of the given sizes. */
    public static Shape of(long... sizes) {
      return new Shape(Vector.ofAll(sizes));
    }
  }

  /** Values in order, whichever kind of list the library keeps them in. */
  record Array(Seq<Any> elements) implements Any {

    /** An array of the given values. */
    public static Array of(Any... elements) {
      return new Array(Vector.of(elements));
    }

    /** An array of integers. */
    public static Array ofInts(long... elements) {
      return new Array(Vector.ofAll(elements).map(Int::new));
    }
  }

  /**
   * A tensor that somebody else owns. As an argument it is lent for the call, which a function that
   * wants a tensor object refuses: that needs a {@link TensorObject}.
   */
  record Lent(TensorView view) implements Any {}

  /** An error that was returned, not raised. */
  record Failure(String kind, String message, String backtrace) implements Any {}

  /** An object of the library, held until it is closed. */
  sealed interface Held extends Any, AutoCloseable permits ObjectReference {
    /** Gives the reference up, once however often it is called. */
    @Override
    void close();
  }

  /** The value as a list of integers, absent where it is none. */
  default Option<Seq<Long>> ints() {
    return switch (this) {
      case Shape shape -> Option.some(shape.sizes);
      case Array array ->
          Option.sequence(
              array.elements.map(
                  element ->
                      element instanceof Int(long value)
                          ? Option.some(value)
                          : Option.<Long>none()));
      case None _, Int _, Bool _, Real _, Opaque _, ElementType _, OnDevice _, Text _, Bytes _ ->
          Option.none();
      case Lent _, Failure _, Held _ -> Option.none();
    };
  }
}

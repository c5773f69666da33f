package bifocal.tvm;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * The type of a parameter or result, as a module tells it.
 *
 * @param name for instance {@code int}, {@code DLTensor*} or {@code Optional}
 * @param of what the type is made of: the elements of an array, say, or the cases of a variant
 */
public record TypeSchema(String name, Seq<TypeSchema> of) {

  /** A type that is made of none. */
  public static TypeSchema of(String name) {
    return new TypeSchema(name, Vector.empty());
  }

  /** As in {@code ffi.Array<int>}. */
  @Override
  public String toString() {
    return of.isEmpty() ? name : name + of.mkString("<", ", ", ">");
  }
}

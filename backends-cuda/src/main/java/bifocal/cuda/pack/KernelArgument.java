package bifocal.cuda.pack;

import io.vavr.collection.Seq;

/**
 * One parameter of a kernel, in the kernel's order.
 *
 * @param name what is passed
 * @param kind how it is passed
 * @param element type of what a pointer points to, or of a number: for instance {@code bf16} or
 *     {@code i64}
 * @param offset bytes from the start of the parameters, as the driver reports it
 * @param size bytes
 * @param multipleOf what the compiler was promised of an address (in bytes) or stride (in
 *     elements); 1 when nothing
 */
public record KernelArgument(
    String name, Kind kind, String element, int offset, int size, int multipleOf) {

  /** Kinds of parameters. */
  public sealed interface Kind {
    /** An address of device memory. */
    record Pointer() implements Kind {}

    /** A number. */
    record Scalar() implements Kind {}

    /** A distance in elements. */
    record Stride() implements Kind {}

    /**
     * A tensor map by value.
     *
     * @param box elements of one copy, outermost dimension first
     * @param swizzle the driver's enumeration
     * @param elementBytes bytes of an element
     */
    record TensorMap(Seq<Integer> box, int swizzle, int elementBytes) implements Kind {}
  }
}

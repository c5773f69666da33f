package bifocal.tvm;

/**
 * An object that is passed on as it is: of a type this package does not read, or an array, text or
 * shape that goes from one call into the next without a copy in Java.
 */
public final class OpaqueObject extends ObjectReference {
  private final TvmRuntime runtime;

  OpaqueObject(TvmRuntime runtime, int typeIndex, long address) {
    super(runtime.library(), typeIndex, address);
    this.runtime = runtime;
  }

  /** What it holds, copied where Java can hold it; otherwise a further reference. */
  public Any value() {
    return Slots.read(runtime, Slots.of(typeIndex(), address()));
  }
}

package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.tvm.ffi.ObjectCells;
import bifocal.tvm.ffi.RuntimeLibrary;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * One reference to an object of the library, given up when it is closed. Any thread may close it,
 * and only the first close counts.
 */
public abstract sealed class ObjectReference implements Any.Held
    permits TensorObject, FunctionObject, OpaqueObject {
  private static final VarHandle ADDRESS;

  static {
    try {
      ADDRESS = MethodHandles.lookup().findVarHandle(ObjectReference.class, "address", long.class);
    } catch (ReflectiveOperationException e) {
      throw new LinkageError("address of an object", e);
    }
  }

  private final RuntimeLibrary library;
  private final int typeIndex;

  /** 0 once it is closed. */
  private volatile long address;

  ObjectReference(RuntimeLibrary library, int typeIndex, long address) {
    this.library = library;
    this.typeIndex = typeIndex;
    this.address = address;
  }

  /** The number of its type. */
  public final int typeIndex() {
    return typeIndex;
  }

  /** How many references there are to the object, ours among them. */
  public final int references() {
    return ObjectCells.strongCount(address());
  }

  /** Whether it was closed. */
  public final boolean closed() {
    return address == 0;
  }

  @Override
  public final void close() {
    long held = (long) ADDRESS.getAndSet(this, 0L);
    if (held != 0) {
      library.release(held);
    }
  }

  /**
   * Where the object is.
   *
   * @throws BifocalException {@code CLOSED}
   */
  final long address() {
    long held = address;
    if (held == 0) {
      throw BifocalException.of(ErrorCode.CLOSED, this + " is closed");
    }
    return held;
  }

  final RuntimeLibrary library() {
    return library;
  }

  @Override
  public String toString() {
    return getClass().getSimpleName() + " of type " + typeIndex;
  }
}

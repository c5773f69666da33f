package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.tensor.TensorView;
import bifocal.tvm.ffi.NativeMemory;
import bifocal.tvm.ffi.ObjectCells;
import bifocal.tvm.ffi.RuntimeLibrary;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;

/**
 * A tensor as an object of the library. One made in Java is made once per buffer and describes
 * memory that its owner keeps; the description itself lives as long as anybody, native code too,
 * holds a reference.
 */
public final class TensorObject extends ObjectReference {
  /** Size of a {@code DLManagedTensorVersioned}, and where its parts are. */
  private static final int MANAGED_BYTES = 80;

  private static final int MANAGED_DELETER = 16;
  private static final int MANAGED_TENSOR = 32;

  private static final int DLPACK_MAJOR = 1;

  private final Option<TensorView> described;
  private final MemorySegment.Scope scope;

  private TensorObject(RuntimeLibrary library, long address, Option<TensorView> described) {
    super(library, TypeIndex.TENSOR, address);
    this.described = described;
    this.scope = described.map(view -> view.data().scope()).getOrElse(NativeMemory.ALWAYS);
  }

  /** Takes over a reference to a tensor that native code made. */
  static TensorObject owned(RuntimeLibrary library, long address) {
    return new TensorObject(library, address, Option.none());
  }

  static TensorObject of(RuntimeLibrary library, TensorView view) {
    DlTensor.requireNative(view);
    MemorySegment managed =
        NativeMemory.handedOver(MANAGED_BYTES + 2L * Long.BYTES * Math.max(view.rank(), 1));
    managed.set(Slots.INT, 0, DLPACK_MAJOR);
    managed.set(Slots.LONG, MANAGED_DELETER, NativeMemory.releaser());
    DlTensor.write(managed, MANAGED_TENSOR, MANAGED_BYTES, view);
    MemorySegment tensor = NativeMemory.held(Long.BYTES);
    if (library.tensorFromDlpack(managed, tensor) != 0) {
      NativeMemory.takeBack(managed);
      throw Failures.of("a tensor object of " + view, library);
    }
    return new TensorObject(library, tensor.get(Slots.LONG, 0), Option.some(view));
  }

  /**
   * What the tensor describes. Memory that native code allocated is good until this reference is
   * closed.
   *
   * @throws BifocalException {@code CLOSED}, or {@code UNSUPPORTED} for an element type or device
   *     that this runtime has no name for
   */
  public TensorView view() {
    long address = address();
    return described.getOrElse(() -> DlTensor.read(ObjectCells.dlTensor(address)));
  }

  /** How long the memory that it describes is known to last. */
  MemorySegment.Scope scope() {
    return scope;
  }
}

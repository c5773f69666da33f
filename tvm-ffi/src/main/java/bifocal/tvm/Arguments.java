package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.tvm.ffi.NativeMemory;
import bifocal.tvm.ffi.RuntimeLibrary;
import io.vavr.collection.Seq;
import java.lang.foreign.MemorySegment;
import java.lang.ref.Reference;
import java.util.Arrays;
import java.util.Objects;

/**
 * The arguments of a call, and room for its result, made once and used for many calls. Arguments
 * stay until they are set again; setting numbers, tensors and objects and calling allocate nothing.
 *
 * <p>An object that is set is held, with a reference of its own, until the argument is set again or
 * this is closed. One thread makes, uses and closes it: errors and streams of TVM-FFI belong to the
 * thread, which therefore is no virtual one.
 */
public final class Arguments implements AutoCloseable {
  private static final Object NOTHING = new Object();

  private final TvmRuntime runtime;
  private final RuntimeLibrary library;
  private final Thread owner = Thread.currentThread();
  private final int count;
  private final MemorySegment slots;
  private final MemorySegment result = NativeMemory.held(Slots.BYTES);
  private final MemorySegment streamBefore = NativeMemory.held(Long.BYTES);

  /** What the address in a slot belongs to, and the reference that was taken for it. */
  private final Object[] kept;

  private final long[] references;
  private boolean calling;
  private boolean closed;

  Arguments(TvmRuntime runtime, int count) {
    if (owner.isVirtual()) {
      throw BifocalException.of(
          ErrorCode.WRONG_THREAD,
          "thread of TVM-FFI calls",
          "a virtual thread",
          "a platform thread");
    }
    this.runtime = runtime;
    this.library = runtime.library();
    this.count = count;
    this.slots = NativeMemory.held((long) Math.max(count, 1) * Slots.BYTES);
    this.kept = new Object[count];
    Arrays.fill(kept, NOTHING);
    this.references = new long[count];
  }

  /** How many there are. */
  public int count() {
    return count;
  }

  /** Sets an argument to nothing, which an optional parameter takes for absent. */
  public Arguments none(int index) {
    return put(index, TypeIndex.NONE, 0, NOTHING);
  }

  /** Sets an integer. */
  public Arguments integer(int index, long value) {
    return put(index, TypeIndex.INT, value, NOTHING);
  }

  /** Sets a truth value. */
  public Arguments bool(int index, boolean value) {
    return put(index, TypeIndex.BOOL, value ? 1 : 0, NOTHING);
  }

  /** Sets a floating-point number. */
  public Arguments real(int index, double value) {
    return put(index, TypeIndex.FLOAT, Double.doubleToRawLongBits(value), NOTHING);
  }

  /** Sets an address, for a parameter that is a {@code void *}. */
  public Arguments opaque(int index, long address) {
    return put(index, TypeIndex.OPAQUE, address, NOTHING);
  }

  /** Sets an element type. */
  public Arguments type(int index, DlType type) {
    return put(index, TypeIndex.DATA_TYPE, Slots.word(type), NOTHING);
  }

  /** Sets a device. */
  public Arguments device(int index, DlDevice device) {
    return put(index, TypeIndex.DEVICE, Slots.word(device), NOTHING);
  }

  /**
   * Sets a text, which is copied.
   *
   * @throws BifocalException {@code INVALID_PARAMETER} if it contains the character 0
   */
  public Arguments text(int index, String value) {
    if (value.indexOf('\0') >= 0) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "text of an argument", "with a character 0", "without one");
    }
    MemorySegment copy = NativeMemory.text(value);
    return put(index, TypeIndex.RAW_TEXT, copy.address(), copy);
  }

  /**
   * Sets a tensor that is lent to the call. What the tensor is made to describe later, later calls
   * see.
   */
  public Arguments tensor(int index, DlTensor tensor) {
    return put(index, TypeIndex.DL_TENSOR, tensor.address(), tensor);
  }

  /**
   * Sets an object, and holds it.
   *
   * @throws BifocalException {@code CLOSED}
   */
  public Arguments object(int index, ObjectReference object) {
    requireUsable();
    Objects.checkIndex(index, count);
    long address = object.address();
    if (references[index] != address) {
      library.retain(address);
      drop(index);
      references[index] = address;
    }
    kept[index] = object;
    Slots.write(slots, (long) index * Slots.BYTES, object.typeIndex(), address);
    return this;
  }

  /** Sets any value. Arrays and shapes become objects of the library. */
  public Arguments set(int index, Any value) {
    return switch (value) {
      case Any.None _ -> none(index);
      case Any.Int(long number) -> integer(index, number);
      case Any.Bool(boolean truth) -> bool(index, truth);
      case Any.Real(double number) -> real(index, number);
      case Any.Opaque(long address) -> opaque(index, address);
      case Any.ElementType(DlType type) -> type(index, type);
      case Any.OnDevice(DlDevice device) -> device(index, device);
      case Any.Text(String text) -> text(index, text);
      case Any.Bytes(Seq<Byte> bytes) -> bytes(index, bytes);
      case Any.Lent lent -> tensor(index, DlTensor.of(lent.view()));
      case Any.Shape shape -> handOver(index, runtime.shape(shape));
      case Any.Array array -> handOver(index, runtime.array(array));
      case ObjectReference object -> object(index, object);
      case Any.Failure failure ->
          throw BifocalException.of(
              ErrorCode.UNSUPPORTED, "argument " + index, failure, "a value that is no error");
    };
  }

  /** A {@code TVMFFIByteArray} with its content behind it. */
  private Arguments bytes(int index, Seq<Byte> bytes) {
    MemorySegment array = NativeMemory.byteArray(Slots.array(bytes));
    return put(index, TypeIndex.BYTE_ARRAY, array.address(), array);
  }

  private Arguments handOver(int index, ObjectReference object) {
    try (object) {
      return object(index, object);
    }
  }

  /** What the last call returned; a reference in it is a further one, and the caller's to close. */
  public Any result() {
    requireUsable();
    return Slots.read(runtime, result);
  }

  /**
   * The integer or truth value that the last call returned.
   *
   * @throws BifocalException {@code DTYPE_MISMATCH} if it returned something else
   */
  public long integerResult() {
    requireUsable();
    int type = result.get(Slots.INT, 0);
    if (type != TypeIndex.INT && type != TypeIndex.BOOL) {
      throw BifocalException.of(
          ErrorCode.DTYPE_MISMATCH, "result of a call", result(), "an integer");
    }
    return result.get(Slots.LONG, Slots.VALUE);
  }

  /**
   * Takes the object that the last call returned, without copying what it holds: to pass it on.
   *
   * @return the caller's to close
   * @throws BifocalException {@code DTYPE_MISMATCH} if it returned no object
   */
  public ObjectReference takeResult() {
    requireUsable();
    int type = result.get(Slots.INT, 0);
    if (type < TypeIndex.FIRST_OBJECT) {
      throw BifocalException.of(
          ErrorCode.DTYPE_MISMATCH, "result of a call", result(), "an object");
    }
    long object = result.get(Slots.LONG, Slots.VALUE);
    Slots.write(result, 0, TypeIndex.NONE, 0);
    return Slots.reference(runtime, type, object);
  }

  /** Gives up all references: to arguments and to a result that nobody took. */
  @Override
  public void close() {
    if (!closed) {
      requireUsable();
      for (int i = 0; i < count; i++) {
        drop(i);
      }
      dropResult();
      closed = true;
    }
  }

  void call(MemorySegment function, long self, String name) {
    requireUsable();
    for (int i = 0; i < count; i++) {
      requireAlive(i);
    }
    dropResult();
    if (callNow(function, self) != 0) {
      throw Failures.of(name, library);
    }
    Failures.requireNone(name);
  }

  private int callNow(MemorySegment function, long self) {
    calling = true;
    try {
      return library.call(function, self, slots, count, result);
    } finally {
      calling = false;
      Reference.reachabilityFence(kept);
    }
  }

  void enter(DeviceStream stream) {
    requireUsable();
    setStream(stream, stream.handle());
  }

  void leave(DeviceStream stream) {
    setStream(stream, streamBefore.get(Slots.LONG, 0));
  }

  private void setStream(DeviceStream stream, long handle) {
    DlDevice device = stream.device();
    if (library.setStream(device.type(), device.id(), handle, streamBefore) != 0) {
      throw Failures.of("setting a stream", library);
    }
  }

  private Arguments put(int index, int type, long value, Object owner) {
    requireUsable();
    Objects.checkIndex(index, count);
    drop(index);
    kept[index] = owner;
    Slots.write(slots, (long) index * Slots.BYTES, type, value);
    return this;
  }

  private void drop(int index) {
    if (references[index] != 0) {
      library.release(references[index]);
      references[index] = 0;
    }
  }

  private void dropResult() {
    if (result.get(Slots.INT, 0) >= TypeIndex.FIRST_OBJECT) {
      library.release(result.get(Slots.LONG, Slots.VALUE));
    }
    Slots.write(result, 0, TypeIndex.NONE, 0);
  }

  private void requireAlive(int index) {
    boolean alive =
        switch (kept[index]) {
          case DlTensor tensor -> tensor.described().data().scope().isAlive();
          case TensorObject tensor -> tensor.scope().isAlive();
          default -> true;
        };
    if (!alive) {
      throw BifocalException.of(ErrorCode.CLOSED, "memory of argument " + index + " is closed");
    }
  }

  private void requireUsable() {
    if (Thread.currentThread() != owner) {
      throw BifocalException.of(
          ErrorCode.WRONG_THREAD, "thread of TVM-FFI arguments", Thread.currentThread(), owner);
    }
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "arguments of a TVM-FFI call are closed");
    }
    if (calling) {
      throw BifocalException.of(
          ErrorCode.IN_USE, "arguments of a TVM-FFI call are used by the call that is under way");
    }
  }
}

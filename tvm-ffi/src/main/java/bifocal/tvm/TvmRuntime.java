package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.TensorView;
import bifocal.tvm.ffi.CallbackStubs;
import bifocal.tvm.ffi.NativeMemory;
import bifocal.tvm.ffi.RuntimeLibrary;
import io.vavr.collection.Seq;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * The TVM-FFI runtime of this process: {@code libtvm_ffi}, in which modules find the functions they
 * need. It stays loaded as long as the JVM. Any thread may use it.
 */
public final class TvmRuntime {
  private final RuntimeLibrary library;
  private final FunctionObject makeArray;
  private final FunctionObject makeShape;

  private TvmRuntime(RuntimeLibrary library) {
    this.library = library;
    this.makeArray = global("ffi.Array");
    this.makeShape = global("ffi.Shape");
  }

  /**
   * Loads the runtime. A library that sets signal handlers when it is loaded, as the one that
   * {@code apache-tvm-ffi} brings does, gets none.
   *
   * @param file the {@code libtvm_ffi.so} to load
   * @throws BifocalException {@code NATIVE_MISSING} if the file is not there, does not load, is of
   *     another version, or lacks a function, or if another copy of it is in this process
   */
  public static TvmRuntime load(Path file) {
    return new TvmRuntime(RuntimeLibrary.load(file));
  }

  /** Version of the library, for instance {@code 0.1.16}. */
  public String version() {
    return library.version();
  }

  /**
   * Opens a module. It stays loaded as long as the JVM.
   *
   * @throws BifocalException {@code NATIVE_MISSING} if the file is not there, does not load, or was
   *     made for a runtime that has functions which this one lacks
   */
  public TvmModule open(Path file) {
    return TvmModule.open(this, file);
  }

  /** Room for the arguments and the result of calls on the current thread. */
  public Arguments arguments(int count) {
    return new Arguments(this, count);
  }

  /**
   * A function that the runtime or a module registered for everybody.
   *
   * @return the caller's to close
   * @throws BifocalException {@code NATIVE_MISSING} if there is none of the name
   */
  public FunctionObject global(String name) {
    MemorySegment bytes = NativeMemory.byteArray(name.getBytes(StandardCharsets.UTF_8));
    MemorySegment function = NativeMemory.held(Long.BYTES);
    if (library.globalFunction(bytes, function) != 0) {
      throw Failures.of("looking up the function " + name, library);
    }
    if (function.get(Slots.LONG, 0) == 0) {
      throw BifocalException.of(
          ErrorCode.NATIVE_MISSING, "global TVM-FFI function", "none called " + name, name);
    }
    return new FunctionObject(this, name, function.get(Slots.LONG, 0));
  }

  /**
   * A tensor object over memory that somebody else owns and keeps as long as the object is used.
   *
   * @return the caller's to close
   * @throws BifocalException {@code UNSUPPORTED} if the memory is in the Java heap
   */
  public TensorObject tensor(TensorView view) {
    return TensorObject.of(library, view);
  }

  /**
   * A function in Java as a value that native code can call, as long as anybody holds a reference
   * to it.
   *
   * @return the caller's to close
   */
  public FunctionObject function(String name, JavaFunction body) {
    long number = CallbackStubs.remember((arguments, result) -> called(body, arguments, result));
    MemorySegment function = NativeMemory.held(Long.BYTES);
    if (library.createFunction(number, CallbackStubs.safeCall(), CallbackStubs.deleter(), function)
        != 0) {
      CallbackStubs.forget(number);
      throw Failures.of("making the function " + name, library);
    }
    return new FunctionObject(this, name, function.get(Slots.LONG, 0));
  }

  /**
   * The stream on which kernels of the current thread run outside of calls that bring their own.
   *
   * @return the driver's handle; 0 if none was set
   */
  public long stream(DlDevice device) {
    return library.stream(device.type(), device.id());
  }

  /**
   * An array of values as an object, to pass to several calls.
   *
   * @return the caller's to close
   */
  public ObjectReference array(Any.Array array) {
    return made(makeArray, array.elements());
  }

  /**
   * A shape as an object, to pass to several calls.
   *
   * @return the caller's to close
   */
  public ObjectReference shape(Any.Shape shape) {
    return made(makeShape, shape.sizes().map(Any.Int::new));
  }

  RuntimeLibrary library() {
    return library;
  }

  private ObjectReference made(FunctionObject maker, Seq<? extends Any> elements) {
    try (Arguments arguments = arguments(elements.length())) {
      elements.zipWithIndex().forEach(element -> arguments.set(element._2, element._1));
      maker.call(arguments);
      return arguments.takeResult();
    }
  }

  private int called(JavaFunction body, MemorySegment slots, MemorySegment result) {
    try {
      Seq<Any> arguments = Slots.readAll(this, slots);
      try {
        give(body.call(arguments), result);
        return 0;
      } finally {
        arguments.forEach(TvmRuntime::close);
      }
    } catch (Throwable thrown) {
      Failures.raise(library, thrown);
      return -1;
    }
  }

  /** Puts what Java returned where native code takes it over. */
  private void give(Any value, MemorySegment result) {
    switch (value) {
      case Any.None _ -> Slots.write(result, 0, TypeIndex.NONE, 0);
      case Any.Int(long number) -> Slots.write(result, 0, TypeIndex.INT, number);
      case Any.Bool(boolean truth) -> Slots.write(result, 0, TypeIndex.BOOL, truth ? 1 : 0);
      case Any.Real(double number) ->
          Slots.write(result, 0, TypeIndex.FLOAT, Double.doubleToRawLongBits(number));
      case Any.Opaque(long address) -> Slots.write(result, 0, TypeIndex.OPAQUE, address);
      case Any.ElementType(DlType type) ->
          Slots.write(result, 0, TypeIndex.DATA_TYPE, Slots.word(type));
      case Any.OnDevice(DlDevice device) ->
          Slots.write(result, 0, TypeIndex.DEVICE, Slots.word(device));
      case Any.Text(String text) -> giveText(text, result);
      case Any.Lent lent -> give(tensor(lent.view()), result);
      case Any.Shape shape -> give(shape(shape), result);
      case Any.Array array -> give(array(array), result);
      case ObjectReference object -> {
        try (object) {
          library.retain(object.address());
          Slots.write(result, 0, object.typeIndex(), object.address());
        }
      }
      case Any.Bytes _, Any.Failure _ ->
          throw BifocalException.of(
              ErrorCode.UNSUPPORTED, "result of a function in Java", value, "another kind");
    }
  }

  private void giveText(String text, MemorySegment result) {
    MemorySegment bytes = NativeMemory.byteArray(text.getBytes(StandardCharsets.UTF_8));
    if (library.stringFromBytes(bytes, result) != 0) {
      throw Failures.of("making a text", library);
    }
  }

  private static void close(Any value) {
    switch (value) {
      case Any.Held held -> held.close();
      case Any.Array array -> array.elements().forEach(TvmRuntime::close);
      case Any.None _, Any.Int _, Any.Bool _, Any.Real _, Any.Opaque _, Any.ElementType _ -> {}
      case Any.OnDevice _, Any.Text _, Any.Bytes _, Any.Shape _, Any.Lent _, Any.Failure _ -> {}
    }
  }
}

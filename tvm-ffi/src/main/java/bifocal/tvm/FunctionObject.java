package bifocal.tvm;

import bifocal.tvm.ffi.ObjectCells;
import java.lang.foreign.MemorySegment;

/** A function as a value: a global one, one that a call returned, or one in Java. */
public final class FunctionObject extends ObjectReference implements TvmFunction {
  private final TvmRuntime runtime;
  private final String name;
  private final MemorySegment safeCall;

  FunctionObject(TvmRuntime runtime, String name, long address) {
    super(runtime.library(), TypeIndex.FUNCTION, address);
    this.runtime = runtime;
    this.name = name;
    this.safeCall = ObjectCells.safeCall(address);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public TvmRuntime runtime() {
    return runtime;
  }

  @Override
  public void call(Arguments arguments) {
    arguments.call(safeCall, address(), name);
  }

  @Override
  public String toString() {
    return name;
  }
}

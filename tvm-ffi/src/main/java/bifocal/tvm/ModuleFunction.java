package bifocal.tvm;

import java.lang.foreign.MemorySegment;

/** A function that a module exports. Modules stay loaded, so it is good for ever. */
public final class ModuleFunction implements TvmFunction {
  private final TvmRuntime runtime;
  private final String name;
  private final MemorySegment safeCall;

  ModuleFunction(TvmRuntime runtime, String name, long safeCall) {
    this.runtime = runtime;
    this.name = name;
    this.safeCall = MemorySegment.ofAddress(safeCall);
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
    arguments.call(safeCall, 0, name);
  }

  @Override
  public String toString() {
    return name;
  }
}

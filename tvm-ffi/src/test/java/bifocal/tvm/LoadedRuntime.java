package bifocal.tvm;

import bifocal.tvm.ffi.NativeLibraries;
import bifocal.tvm.ffi.RuntimeLibrary;

/** The runtime and the module that most tests call. Loading either again gives the same. */
final class LoadedRuntime {
  private LoadedRuntime() {}

  static TvmRuntime runtime() {
    return TvmRuntime.load(NativeLibraries.require(RuntimeLibrary.NAME));
  }

  static TvmModule cpuModule() {
    TvmRuntime runtime = runtime();
    return runtime.open(NativeLibraries.require("libcpu_module.so"));
  }

  /** Calls a function of the module with values. */
  static Any call(String function, Any... arguments) {
    return cpuModule().function(function).invoke(arguments);
  }
}

package bifocal.cuda.flashinfer;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.tvm.ModuleFunction;
import bifocal.tvm.TvmRuntime;
import io.vavr.collection.Map;

/**
 * A module in this process, whose functions are those that the binding was written for.
 *
 * @param entry what the pack says of it
 * @param runtime the runtime that it was opened with
 * @param functions by name
 */
record LoadedModule(ModuleEntry entry, TvmRuntime runtime, Map<String, ModuleFunction> functions) {

  ModuleFunction function(String name) {
    return functions
        .get(name)
        .getOrElseThrow(() -> new IllegalStateException("nothing calls " + name));
  }

  /**
   * Requires a mask whose kernels were linked; the call of another would end the process.
   *
   * @throws BifocalException {@code NATIVE_MISSING}
   */
  void requireMask(int mask) {
    if (!entry.masks().contains(mask)) {
      throw BifocalException.of(
          ErrorCode.NATIVE_MISSING,
          "module " + entry.key().label(),
          "mask modes " + entry.masks().toSortedSet().mkString(", "),
          "mask mode " + mask);
    }
  }
}

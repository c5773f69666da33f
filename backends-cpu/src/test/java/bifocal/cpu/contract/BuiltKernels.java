package bifocal.cpu.contract;

import bifocal.core.error.BifocalException;
import bifocal.cpu.attention.KernelChoice;
import bifocal.cpu.kernel.CpuKernels;
import org.opentest4j.TestAbortedException;

/** The C kernels of this build. */
final class BuiltKernels {
  private BuiltKernels() {}

  static CpuKernels orSkip() {
    return Loaded.KERNELS;
  }

  private static final class Loaded {
    static final CpuKernels KERNELS = load();

    private static CpuKernels load() {
      try {
        return KernelChoice.nativeKernels();
      } catch (BifocalException missing) {
        throw new TestAbortedException(missing.getMessage());
      }
    }
  }
}

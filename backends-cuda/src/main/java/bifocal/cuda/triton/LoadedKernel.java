package bifocal.cuda.triton;

import bifocal.cuda.driver.CudaKernel;
import bifocal.cuda.driver.LaunchShape;
import bifocal.cuda.driver.PreparedLaunch;
import bifocal.cuda.pack.KernelArgument;
import bifocal.cuda.pack.KernelEntry;
import java.lang.foreign.Arena;

/**
 * A kernel of a pack on the device.
 *
 * @param entry what the pack says of it
 * @param kernel what the driver says of it
 */
record LoadedKernel(KernelEntry entry, CudaKernel kernel) {
  /** Position of a parameter that the kernel does not have. */
  static final int NONE = -1;

  /** Position of a parameter; {@link #NONE} when the kernel has none of that name. */
  int index(String name) {
    return entry.arguments().indexWhere(argument -> argument.name().equals(name));
  }

  /** A parameter. */
  KernelArgument argument(String name) {
    return entry.arguments().get(index(name));
  }

  /** What one program of an attention kernel works on. */
  KernelEntry.Tile tile() {
    return entry.tile().get();
  }

  /** Programs that a multiprocessor has room for at a time. */
  int residentPrograms() {
    return kernel.blocksPerMultiprocessor(entry.threads(), entry.sharedMemory());
  }

  /** A launch whose values are set later. */
  PreparedLaunch prepare(Arena arena) {
    LaunchShape shape = LaunchShape.of(entry.threads(), entry.sharedMemory());
    return kernel.prepare(arena, entry.programmaticLaunch() ? shape.overlap() : shape);
  }
}

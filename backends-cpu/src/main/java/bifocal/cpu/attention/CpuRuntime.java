package bifocal.cpu.attention;

import bifocal.cpu.kernel.CpuKernels;
import bifocal.cpu.thread.CpuThreads;

/**
 * What the CPU backends compute with.
 *
 * @param kernels the kernels
 * @param threads the threads they run on
 */
public record CpuRuntime(CpuKernels kernels, CpuThreads threads) {
  /** The fastest kernels of this JVM on the JVM's shared threads. */
  public static CpuRuntime ofThisJvm() {
    return new CpuRuntime(KernelChoice.ofThisJvm().kernels(), CpuThreads.shared());
  }
}

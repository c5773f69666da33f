package bifocal.cpu.select;

import bifocal.core.device.DeviceProfile.CpuIsa;
import bifocal.core.host.HostFiles;
import io.vavr.collection.HashSet;
import io.vavr.collection.Set;

/** The instruction set of the processor underneath. */
public final class HostProcessor {
  private static final String FLAGS = "/proc/cpuinfo";

  private HostProcessor() {}

  /** The strongest known set; {@code GENERIC} where the system does not say. */
  public static CpuIsa isa() {
    return isa(HostFiles.ofThisHost());
  }

  /** The strongest known set that the files of a host name. */
  public static CpuIsa isa(HostFiles files) {
    return of(files.lines(FLAGS).find(line -> line.startsWith("flags")).getOrElse(""));
  }

  /** The strongest set that a line of flags names. */
  static CpuIsa of(String line) {
    Set<String> flags = HashSet.of(line.split("\\s+"));
    if (flags.contains("amx_tile") && flags.contains("amx_bf16")) {
      return CpuIsa.AMX;
    }
    if (flags.contains("avx512_bf16")) {
      return CpuIsa.AVX512BF16;
    }
    if (flags.contains("avx512f")) {
      return CpuIsa.AVX512F;
    }
    return flags.contains("avx2") ? CpuIsa.AVX2 : CpuIsa.GENERIC;
  }
}

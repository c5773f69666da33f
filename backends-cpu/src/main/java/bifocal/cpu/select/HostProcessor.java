package bifocal.cpu.select;

import bifocal.core.device.DeviceProfile.CpuIsa;
import io.vavr.collection.HashSet;
import io.vavr.collection.Set;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** The instruction set of the processor underneath. */
final class HostProcessor {
  private static final Path FLAGS = Path.of("/proc/cpuinfo");

  private HostProcessor() {}

  /** The strongest known set; {@code GENERIC} where the system does not say. */
  static CpuIsa isa() {
    try (Stream<String> lines = Files.lines(FLAGS)) {
      return of(lines.filter(line -> line.startsWith("flags")).findFirst().orElse(""));
    } catch (IOException unreadable) {
      return CpuIsa.GENERIC;
    }
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

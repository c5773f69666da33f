package bifocal.rocm.select;

import bifocal.core.device.DeviceProfile;
import io.vavr.collection.HashSet;
import io.vavr.collection.Set;
import io.vavr.control.Option;
import java.util.Locale;

/**
 * What is told from an architecture's name.
 *
 * @param cdna generation of the compute line, 0 for others
 * @param localMemory bytes of local memory of one work-group
 */
record AmdArchitecture(int cdna, int localMemory) {
  private static final int LOCAL_MEMORY = 65_536;

  private static final Set<String> KNOWN =
      HashSet.of(
          "gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90a", "gfx90c", "gfx940",
          "gfx941", "gfx942", "gfx950", "gfx1010", "gfx1011", "gfx1012", "gfx1013", "gfx1030",
          "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1100", "gfx1101",
          "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200", "gfx1201",
          "gfx1250", "gfx1251");

  /** A word on a device that is not among the known ones. */
  static Option<String> unknown(DeviceProfile device) {
    return Option.when(
        device instanceof DeviceProfile.Rocm rocm
            && !KNOWN.contains(rocm.arch().toLowerCase(Locale.ROOT)),
        () -> device.label() + " is not known; it counts as none of the compute line (CDNA)");
  }

  static AmdArchitecture of(DeviceProfile device) {
    return device instanceof DeviceProfile.Rocm rocm
        ? new AmdArchitecture(generation(rocm.arch().toLowerCase(Locale.ROOT)), LOCAL_MEMORY)
        : new AmdArchitecture(0, 0);
  }

  private static int generation(String arch) {
    return switch (arch) {
      case "gfx908" -> 1;
      case "gfx90a" -> 2;
      case "gfx940", "gfx941", "gfx942" -> 3;
      case "gfx950" -> 4;
      default -> 0;
    };
  }
}

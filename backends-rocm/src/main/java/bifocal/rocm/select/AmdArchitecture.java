package bifocal.rocm.select;

import bifocal.core.device.DeviceProfile;
import java.util.Locale;

/**
 * What is told from an architecture's name.
 *
 * @param cdna generation of the compute line, 0 for others
 * @param localMemory bytes of local memory of one work-group
 */
record AmdArchitecture(int cdna, int localMemory) {
  private static final int LOCAL_MEMORY = 65_536;

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

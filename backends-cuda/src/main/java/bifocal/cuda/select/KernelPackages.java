package bifocal.cuda.select;

import bifocal.core.device.DeviceProfile;

/**
 * Optional kernel packages. In simulation each is there unless {@code no-NAME} is assumed; on a
 * probed host it is there when the probe found it.
 */
enum KernelPackages {
  FLASH_ATTENTION_3("fa3"),
  FLASH_ATTENTION_4("fa4"),
  FLASHINFER_CUBINS("flashinfer-cubins"),
  B12X("b12x");

  private final String label;

  KernelPackages(String label) {
    this.label = label;
  }

  boolean on(DeviceProfile device) {
    return device.simulated()
        ? !device.packages().contains("no-" + label)
        : device.packages().contains(label);
  }
}

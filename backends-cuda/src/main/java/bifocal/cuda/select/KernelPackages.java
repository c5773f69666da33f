package bifocal.cuda.select;

import bifocal.core.device.DeviceProfile;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * Optional kernel packages. In simulation each is there unless {@code no-NAME} is assumed; on a
 * probed host it is there when the probe found it.
 */
enum KernelPackages {
  FLASH_ATTENTION_3("fa3"),
  FLASH_ATTENTION_4("fa4"),
  FLASHINFER_CUBINS("flashinfer-cubins"),
  B12X("b12x"),
  FLASHINFER("flashinfer"),
  FLASHINFER_SPARSE_MLA("flashinfer-sparse-mla"),
  FLASHINFER_MLA_SM90("flashinfer-mla-sm90"),
  FLASHMLA("flashmla"),
  FLASHMLA_EXTENSION("flashmla-extension"),
  FLASHMLA_MEGA("flashmla-mega"),
  FLASHMLA_MEGA_PERMUTE("flashmla-mega-permute"),
  TOKENSPEED_MLA("tokenspeed-mla");

  private final String label;
  private final String absent;

  KernelPackages(String label) {
    this.label = label;
    this.absent = "no-" + label;
  }

  /** Every name. */
  static Seq<String> names() {
    return Vector.of(values()).map(known -> known.label);
  }

  boolean on(DeviceProfile device) {
    return device.simulated()
        ? !device.packages().contains(absent)
        : device.packages().contains(label);
  }
}

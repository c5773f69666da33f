package bifocal.cuda;

import bifocal.core.device.ComputeCapability;
import bifocal.cuda.flashattention.ForwardPack;
import bifocal.cuda.triton.TritonHost;
import io.vavr.collection.HashSet;
import io.vavr.collection.Set;

/** Optional kernel packages of this host that versions of kernels are chosen by. */
final class InstalledPackages {
  private static final String FLASH_ATTENTION_4 = "fa4";

  private InstalledPackages() {}

  /** Those that lie beside the kernel packs, for a device. */
  static Set<String> of(ComputeCapability capability) {
    boolean forwards =
        TritonHost.named()
            .exists(
                packs ->
                    ForwardPack.open(packs, capability).exists(pack -> pack.missing().isEmpty()));
    return forwards ? HashSet.of(FLASH_ATTENTION_4) : HashSet.empty();
  }
}

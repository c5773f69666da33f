package bifocal.cli.bench;

import bifocal.core.device.Platform;

/** What can be measured. */
enum Suite {
  /** Attention on the host processor. */
  cpu(Platform.CPU),
  /** Attention on a GPU. */
  gpu(Platform.CUDA),
  /** What Bifocal itself costs. */
  host(Platform.CPU);

  private final Platform platform;

  Suite(Platform platform) {
    this.platform = platform;
  }

  /** What computes. */
  Platform platform() {
    return platform;
  }
}

package bifocal.cpu.attention;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;

/**
 * {@code CPU_ATTN}: causal, windowed and two-way attention; images it leaves to another backend.
 */
public final class CpuAttnBackend extends CpuBackend {
  /** Its name. */
  public static final BackendName NAME = BackendName.of("CPU_ATTN");

  /** A backend that computes with some kernels and threads. */
  public CpuAttnBackend(CpuRuntime runtime) {
    super(runtime, false);
  }

  @Override
  public BackendName name() {
    return NAME;
  }

  @Override
  public Capabilities capabilities() {
    return CpuFeatures.CPU_ATTN;
  }
}

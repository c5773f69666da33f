package bifocal.cpu.attention;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.select.FeatureRow;
import bifocal.core.select.FeatureTable;
import bifocal.core.select.Tabulated;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * {@code CPU_ATTN}: causal, windowed and two-way attention; images it leaves to another backend.
 */
public final class CpuAttnBackend extends CpuBackend implements Tabulated {
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

  @Override
  public Seq<FeatureRow> rows() {
    return Vector.of(
        FeatureRow.of(FeatureTable.STANDARD, NAME, "", CpuFeatures.CPU_ATTN.reference()));
  }
}

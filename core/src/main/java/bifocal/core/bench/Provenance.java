package bifocal.core.bench;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * Where, when and how a table of measurements came about. A table counts only where all of this but
 * the time and the command is as it was.
 *
 * @param machine the processor's name, or that of the host
 * @param device what computed, for instance {@code cuda 9.0}
 * @param kernels kernels and threads that computed
 * @param java version of the JVM
 * @param version version of Bifocal
 * @param commit commit that Bifocal was built from, {@link #UNKNOWN} outside a checkout
 * @param time when it was measured
 * @param command how it was measured
 */
public record Provenance(
    String machine,
    String device,
    String kernels,
    String java,
    String version,
    String commit,
    String time,
    String command) {
  /** Stands for what nobody knows. */
  public static final String UNKNOWN = "unknown";

  /** Why a table with this provenance does not count here. */
  public Seq<String> objections(Provenance here) {
    return Vector.of(
            differs("machine", machine, here.machine),
            differs("device", device, here.device),
            differs("kernels", kernels, here.kernels),
            differs("Java", java, here.java),
            differs("Bifocal", version, here.version),
            commit.equals(UNKNOWN) || here.commit.equals(UNKNOWN)
                ? Option.<String>none()
                : differs("commit", commit, here.commit))
        .flatMap(objection -> objection);
  }

  private static Option<String> differs(String what, String measured, String here) {
    return Option.when(
        !measured.equals(here), () -> what + ": measured on " + measured + ", here is " + here);
  }
}

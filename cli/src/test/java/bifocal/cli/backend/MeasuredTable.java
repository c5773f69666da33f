package bifocal.cli.backend;

import bifocal.core.backend.BackendName;
import bifocal.core.bench.Calibration;
import bifocal.core.bench.CalibrationJson;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.device.Platform;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** A table of this host, in which one child of {@code FLEX_CPU_ATTN} is faster. */
public final class MeasuredTable {
  private static final String VERSION = "bifocal 0.1.0-SNAPSHOT";

  private MeasuredTable() {}

  /**
   * Writes one.
   *
   * @param general nanoseconds of {@code FLEX_ATTENTION}
   * @param fast nanoseconds of {@code CPU_ATTN}
   */
  public static Path write(Path folder, double general, double fast, DType dtype, int headSize) {
    Seq<ChildTime> times =
        Vector.of(Phase.values())
            .flatMap(
                phase ->
                    Vector.of(
                        time("FLEX_ATTENTION", dtype, headSize, phase, general),
                        time("CPU_ATTN", dtype, headSize, phase, fast)));
    Path table = folder.resolve("calibration.json");
    try {
      Files.writeString(
          table,
          CalibrationJson.write(
              new Calibration(HostProvenance.now(Platform.CPU, VERSION, "a test"), times)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return table;
  }

  private static ChildTime time(
      String child, DType dtype, int headSize, Phase phase, double nanos) {
    return new ChildTime(BackendName.of(child), dtype, headSize, phase, 1, 64, nanos);
  }
}

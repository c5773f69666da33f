package bifocal.core.bench;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;

/**
 * Measurements of one platform beside its peers and its peaks. Found by {@link
 * java.util.ServiceLoader}.
 */
public interface BenchmarkSuite {

  /** Its name: {@code cpu}, {@code gpu} or {@code host}. */
  String name();

  /**
   * Measures. Outputs are compared before a time of theirs is reported.
   *
   * @throws bifocal.core.error.BifocalException {@code NATIVE_MISSING} when what is measured cannot
   *     run here, {@code INTERNAL} when outputs differ
   */
  BenchmarkReport run(BenchmarkRequest request);

  /**
   * Measures the children of the platform's composites one by one, for policies that choose by
   * time. Outputs of children are compared before a time of theirs is reported.
   *
   * @throws bifocal.core.error.BifocalException {@code UNSUPPORTED} by a suite without children,
   *     else as {@link #run}
   */
  default Seq<ChildTime> calibrate(BenchmarkRequest request) {
    throw BifocalException.of(
        ErrorCode.UNSUPPORTED, "calibration", "suite " + name(), "a suite that times children");
  }
}

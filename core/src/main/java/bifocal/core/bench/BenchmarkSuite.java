package bifocal.core.bench;

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
}

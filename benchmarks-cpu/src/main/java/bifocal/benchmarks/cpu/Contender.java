package bifocal.benchmarks.cpu;

/** Somebody who computes a work. */
interface Contender extends AutoCloseable {
  /** Its name in reports. */
  String name();

  /** Computes once. */
  void run();

  /**
   * One output of the last run.
   *
   * @param values receives the head's values
   */
  void read(int token, int head, float[] values);

  @Override
  void close();
}

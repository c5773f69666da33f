package bifocal.benchmarks.cpu;

/**
 * A figure that is wanted, and the one that was reached.
 *
 * @param what is compared
 * @param bound {@code >=} or {@code <=}
 */
record Goal(String what, String bound, double wanted, double reached, boolean met) {
  static Goal atLeast(String what, double wanted, double reached) {
    return new Goal(what, ">=", wanted, reached, reached >= wanted);
  }

  static Goal atMost(String what, double wanted, double reached) {
    return new Goal(what, "<=", wanted, reached, reached <= wanted);
  }
}

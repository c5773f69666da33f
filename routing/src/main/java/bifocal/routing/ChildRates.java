package bifocal.routing;

import bifocal.core.backend.BackendName;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/** Times of one backend in one kind of layer. Looking one up allocates nothing. */
final class ChildRates {
  private final Phase[] phases;
  private final double[] queries;
  private final double[] keys;
  private final double[] nanos;

  private ChildRates(Seq<ChildTime> times) {
    this.phases = times.map(ChildTime::phase).toJavaArray(Phase[]::new);
    this.queries = times.toJavaStream().mapToDouble(t -> Math.log(t.queryLen())).toArray();
    this.keys = times.toJavaStream().mapToDouble(t -> Math.log(t.seqLen())).toArray();
    this.nanos = times.toJavaStream().mapToDouble(ChildTime::nanosPerPair).toArray();
  }

  /** What was measured of a backend, absent without a time. */
  static Option<ChildRates> of(Seq<ChildTime> times, BackendName child, DType dtype, int headSize) {
    Seq<ChildTime> own =
        times.filter(
            time ->
                time.child().equals(child) && time.dtype() == dtype && time.headSize() == headSize);
    return Option.when(own.nonEmpty(), () -> new ChildRates(own));
  }

  /**
   * Nanoseconds for each query head and causal pair, as measured for the requests of a phase that
   * are most alike; NaN when none was measured.
   */
  double nanosPerPair(Phase phase, int queryLen, int seqLen) {
    double logQueries = Math.log(queryLen);
    double logKeys = Math.log(seqLen);
    double nearest = Double.POSITIVE_INFINITY;
    double found = Double.NaN;
    for (int i = 0; i < nanos.length; i++) {
      double distance = Math.abs(queries[i] - logQueries) + Math.abs(keys[i] - logKeys);
      if (phases[i] == phase && distance < nearest) {
        nearest = distance;
        found = nanos[i];
      }
    }
    return found;
  }
}

package bifocal.benchmarks.cpu;

import io.vavr.collection.Map;
import io.vavr.control.Option;

/**
 * One work on a number of threads. Rates are medians, in {@code unit}.
 *
 * @param ours the fastest kernels of this host
 * @param vectorApi the Java kernels, absent where they were not asked for
 * @param peers by name, those that were there and can do the work
 * @param ratioLibtorch ours over libtorch
 * @param percentPeak ours of the highest of {@code peaks}
 * @param peaks the machine, in the same unit, measured in turn with the others
 * @param worstError largest distance between outputs, absent where there was nobody to compare with
 */
record Row(
    String work,
    String dtype,
    int threads,
    double ours,
    Option<Double> vectorApi,
    Map<String, Double> peers,
    Option<Double> ratioLibtorch,
    Option<Double> percentPeak,
    String unit,
    String kernels,
    Map<String, Double> peaks,
    Option<Double> worstError) {

  /** Ours over a peer, absent without it. */
  Option<Double> ratio(String peer) {
    return peers.get(peer).map(rate -> ours / rate);
  }
}

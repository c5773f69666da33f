package bifocal.cli.replay;

import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.core.backend.BackendName;
import bifocal.core.route.Child;
import bifocal.core.route.Route;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * What one backend did in one step for one layer group.
 *
 * @param route where the batch went; absent for a backend that does not route
 * @param buildNanos metadata, routing included
 * @param writeNanos keys and values into the cache, all layers
 * @param forwardNanos attention, all layers
 * @param nanosByBackend the part of {@code forwardNanos} that each kernel backend took
 * @param checks comparisons with the reference
 */
record StepRecord(
    int step,
    String group,
    BackendName backend,
    Seq<Scheduled> requests,
    Option<Route> route,
    long buildNanos,
    long writeNanos,
    long forwardNanos,
    Map<BackendName, Long> nanosByBackend,
    Seq<Check> checks) {

  /** What a step is made of. */
  enum Phase {
    /** Decodes alone. */
    DECODE,
    /** Prompts alone. */
    PREFILL,
    /** Both. */
    MIXED
  }

  /**
   * One request of one step compared with the reference.
   *
   * @param child which child ran it; absent for a backend that does not route
   * @param compared query tokens times heads
   * @param error worst error of an output vector
   */
  record Check(int request, Option<Child> child, int queryTokens, int compared, double error) {}

  int queryTokens() {
    return requests.map(Scheduled::count).sum().intValue();
  }

  boolean hasImageQuery() {
    return requests.exists(Scheduled::hasImageQuery);
  }

  Phase phase() {
    boolean decodes = requests.exists(Scheduled::decode);
    boolean prefills = requests.exists(scheduled -> !scheduled.decode());
    return decodes && prefills ? Phase.MIXED : decodes ? Phase.DECODE : Phase.PREFILL;
  }

  long totalNanos() {
    return buildNanos + writeNanos + forwardNanos;
  }
}

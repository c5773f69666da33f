package bifocal.cli.replay;

import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.cli.replay.Replay.Outcome;
import bifocal.cli.replay.StepRecord.Check;
import bifocal.cli.replay.StepRecord.Phase;
import bifocal.cli.replay.Summary.Agreed;
import bifocal.cli.replay.Summary.BackendChecks;
import bifocal.cli.replay.Summary.BackendTimes;
import bifocal.cli.replay.Summary.Condition;
import bifocal.cli.replay.Summary.GroupChecksum;
import bifocal.cli.replay.Summary.KernelTime;
import bifocal.cli.replay.Summary.ModelFacts;
import bifocal.cli.replay.Summary.PhaseTime;
import bifocal.cli.replay.Summary.Ratio;
import bifocal.cli.replay.Summary.ReasonCount;
import bifocal.cli.replay.Summary.Refused;
import bifocal.cli.replay.Summary.RouteCount;
import bifocal.cli.replay.Summary.TraceFacts;
import bifocal.cli.replay.Workload.Request;
import bifocal.core.backend.BackendName;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.tensor.DType;
import bifocal.reference.Tolerance;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.TreeMap;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * Turns what a replay recorded into its summary.
 *
 * @param names backends in the order in which they ran, the replayed one first
 * @param refused backends that were to be compared and could not
 * @param conditions what computed, and on how many threads
 */
record Summaries(
    Outcome outcome, Seq<BackendName> names, Seq<Refused> refused, Seq<Condition> conditions) {

  Summary of(
      TraceFile trace,
      Workload workload,
      ImageCount count,
      Seq<String> cautions,
      String modelId,
      Seq<LayerGroup> groups,
      Option<ShadowRecorder> shadow,
      long seed) {
    Seq<StepRecord> records = outcome.records();
    Seq<StepRecord> replayed = records.filter(r -> r.backend().equals(names.head()));
    long queryTokens = queryTokens(replayed);
    DType dtype = groups.head().spec().dtype();
    Seq<BackendTimes> times = names.map(name -> times(name, records, queryTokens));
    return new Summary(
        trace(trace, workload, count, cautions.isEmpty() ? "" : TraceFile.ATTRIBUTION, seed),
        new ModelFacts(
            modelId, dtype.label(), groups.head().layers().size(), groups.map(Summaries::group)),
        conditions,
        outcome.steps(),
        queryTokens,
        imageSteps(replayed),
        outcome.deferrals(),
        routes(replayed),
        reasons(replayed),
        times,
        names.map(name -> checks(name, records, Tolerance.of(dtype).out())),
        times
            .tail()
            .map(other -> new Ratio(other.backend(), other.seconds() / times.head().seconds())),
        imageSteps(replayed) >= Summary.STEPS_FOR_RATIOS,
        refused,
        checksums(groups),
        agreements(groups, dtype),
        shadow.map(recorder -> recorder.facts(2 * Tolerance.of(dtype).out())),
        cautions,
        outcome.nanos() / 1e9);
  }

  private Seq<GroupChecksum> checksums(Seq<LayerGroup> groups) {
    return names.flatMap(
        name ->
            outcome
                .checksums()
                .get(name)
                .get()
                .zipWith(
                    groups,
                    (sum, group) ->
                        new GroupChecksum(
                            name.value(),
                            group.name(),
                            Vector.ofAll(sum.projections()),
                            sum.norm())));
  }

  private Seq<Agreed> agreements(Seq<LayerGroup> groups, DType dtype) {
    double bound =
        switch (dtype) {
          case BF16 -> 2e-2;
          case FP16 -> 3e-3;
          default -> 1e-5;
        };
    Seq<Checksum> first = outcome.checksums().get(names.head()).get();
    Seq<Agreed> agreements = Vector.empty();
    for (BackendName name : names.tail()) {
      Seq<Checksum> other = outcome.checksums().get(name).get();
      for (int g = 0; g < groups.size(); g++) {
        double distance = other.get(g).distance(first.get(g));
        agreements =
            agreements.append(
                new Agreed(name.value(), groups.get(g).name(), distance, bound, distance <= bound));
      }
    }
    return agreements;
  }

  private static String group(LayerGroup group) {
    AttentionLayerSpec spec = group.spec();
    return group.name()
        + " "
        + spec.numHeads()
        + "/"
        + spec.numKvHeads()
        + "/"
        + spec.headSize()
        + " "
        + mask(spec.mask());
  }

  /** A mask in words. */
  static String mask(AttentionMask mask) {
    return (mask.causal() ? "causal" : "non-causal")
        + mask.window().map(w -> ", window " + w).getOrElse("")
        + (mask.seesImages() ? ", images " + mask.images().label() : "");
  }

  /** Times of one backend. */
  private static BackendTimes times(BackendName backend, Seq<StepRecord> all, long queryTokens) {
    Seq<StepRecord> records = all.filter(record -> record.backend().equals(backend));
    long build = records.map(StepRecord::buildNanos).sum().longValue();
    long write = records.map(StepRecord::writeNanos).sum().longValue();
    long forward = records.map(StepRecord::forwardNanos).sum().longValue();
    double seconds = (build + write + forward) / 1e9;
    Map<BackendName, Long> byChild = TreeMap.empty();
    for (StepRecord record : records) {
      byChild = byChild.merge(record.nanosByBackend(), Long::sum);
    }
    return new BackendTimes(
        backend.value(),
        seconds,
        build / 1e9,
        write / 1e9,
        forward / 1e9,
        queryTokens / seconds,
        byChild.toVector().map(pair -> new KernelTime(pair._1.value(), pair._2 / 1e6)),
        Vector.of(Phase.values()).map(phase -> phaseTime(phase, records)));
  }

  private static PhaseTime phaseTime(Phase phase, Seq<StepRecord> records) {
    Seq<StepRecord> ofPhase = records.filter(record -> record.phase() == phase);
    return new PhaseTime(
        phase.name(),
        ofPhase.map(StepRecord::step).distinct().size(),
        ofPhase.map(StepRecord::totalNanos).sum().longValue() / 1e6);
  }

  /** Batches of one backend by route. */
  private static Seq<RouteCount> routes(Seq<StepRecord> records) {
    return records
        .filter(record -> record.route().isDefined())
        .groupBy(record -> new RouteCount(record.group(), record.route().get().label(), 0))
        .toVector()
        .map(pair -> new RouteCount(pair._1.group(), pair._1.route(), pair._2.size()))
        .sortBy(count -> count.group() + count.route());
  }

  /** Requests of one backend's batches by reason. */
  private static Seq<ReasonCount> reasons(Seq<StepRecord> records) {
    java.util.Map<ReasonCount, Integer> counts = new java.util.HashMap<>();
    for (StepRecord record : records) {
      for (Route route : record.route()) {
        RequestRoutes requests = route.requests();
        for (int r = 0; r < requests.size(); r++) {
          ReasonCount key =
              new ReasonCount(
                  record.group(), requests.child(r).name(), requests.reason(r).name(), 0);
          counts.merge(key, 1, Integer::sum);
        }
      }
    }
    return Vector.ofAll(counts.entrySet())
        .map(
            e ->
                new ReasonCount(
                    e.getKey().group(), e.getKey().child(), e.getKey().reason(), e.getValue()))
        .sortBy(count -> count.group() + count.child() + count.reason());
  }

  /** Comparisons of one backend with the reference. */
  private static BackendChecks checks(BackendName backend, Seq<StepRecord> records, double bound) {
    Seq<Check> checks =
        records.filter(record -> record.backend().equals(backend)).flatMap(StepRecord::checks);
    double worst = 0;
    for (Check check : checks) {
      worst = Math.max(worst, check.error());
    }
    return new BackendChecks(
        backend.value(),
        checks.size(),
        checks.map(Check::queryTokens).sum().intValue(),
        checks.map(Check::compared).sum().intValue(),
        worst,
        bound,
        !checks.isEmpty() && worst <= bound);
  }

  /** Steps in which some query lies in an image. */
  private static int imageSteps(Seq<StepRecord> records) {
    return records.filter(StepRecord::hasImageQuery).map(StepRecord::step).distinct().size();
  }

  /** Query tokens of all steps. */
  private static long queryTokens(Seq<StepRecord> records) {
    long tokens = 0;
    Option<StepRecord> last = Option.none();
    for (StepRecord record : records) {
      if (last.isEmpty() || last.get().step() != record.step()) {
        tokens += record.requests().map(Scheduled::count).sum().longValue();
      }
      last = Option.some(record);
    }
    return tokens;
  }

  /** What was served. */
  private static TraceFacts trace(
      TraceFile trace, Workload workload, ImageCount count, String attribution, long seed) {
    Seq<Request> requests = workload.requests();
    return new TraceFacts(
        trace.name(),
        attribution,
        trace.requests().head().row(),
        requests.size(),
        requests.count(request -> request.imageCount() > 0),
        count.name(),
        requests.map(Request::imageCount).sum().intValue(),
        workload.imageTokens(),
        requests.map(Request::imagesLeftOut).sum().intValue(),
        requests.map(Request::promptTokens).sum().longValue(),
        requests.map(Request::outputTokens).sum().longValue(),
        seed);
  }
}

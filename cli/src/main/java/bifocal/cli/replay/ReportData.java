package bifocal.cli.replay;

import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.cli.replay.Replay.Contender;
import bifocal.cli.replay.Replay.Outcome;
import bifocal.cli.replay.Selections.GroupSelection;
import bifocal.cli.replay.StepRecord.Check;
import bifocal.cli.replay.Workload.Request;
import bifocal.composite.CompositeBackend;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Child;
import bifocal.core.route.RequestRoutes;
import bifocal.core.route.Route;
import bifocal.core.route.RoutingPolicy;
import bifocal.reference.shadow.ShadowBackend;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * Everything that {@code report.html} shows; the components are the keys of the JSON in the page.
 * What repeats in every batch is a number that points into a list.
 *
 * @param text the summary as the command prints it
 * @param requests the workload
 * @param groups layer groups, in the order of the batches
 * @param backends the replayed one first
 * @param selections what selection says of each group when nobody names a backend
 * @param kernels names of all kernel backends that ran
 * @param reasons why requests went where they went
 * @param steps requests of each step
 * @param batches one for each step, group and backend, in the order in which they ran
 */
record ReportData(
    Invocation invocation,
    Machine machine,
    Summary summary,
    boolean passed,
    String text,
    Seq<Served> requests,
    Seq<GroupFacts> groups,
    Seq<BackendFacts> backends,
    Seq<GroupSelection> selections,
    Seq<String> kernels,
    Seq<Reason> reasons,
    Seq<Seq<Part>> steps,
    Seq<Batch> batches) {

  /**
   * One request of the workload.
   *
   * @param images first and last position of each image
   */
  record Served(int row, String timestamp, int promptTokens, int outputTokens, int[] images) {}

  record GroupFacts(
      String name, String mask, int layers, int heads, int kvHeads, int headSize, String dtype) {}

  /**
   * What a backend was accepted with.
   *
   * @param children A and B, empty for a backend that does not route
   * @param execution whether and how this build runs it
   * @param caches contract of each group's cache
   */
  record BackendFacts(
      String name,
      Seq<String> children,
      Option<String> policy,
      String execution,
      Seq<CacheFacts> caches) {}

  record CacheFacts(String group, String layout, String dtype, int blockSize, long blockBytes) {}

  record Reason(String code, String text) {}

  /** Queries {@code first .. first + count - 1} of a request. */
  record Part(int request, int first, int count) {}

  /**
   * What one backend did in one step for one group.
   *
   * @param children A or B for each request of the step
   * @param reasons for each request of the step
   * @param kernelUs microseconds of each kernel backend
   * @param worst worst error of an output compared with the reference, absent when none was
   */
  record Batch(
      int step,
      int group,
      int backend,
      Option<String> route,
      Option<String> children,
      Seq<Integer> reasons,
      double buildUs,
      double writeUs,
      double forwardUs,
      Seq<Double> kernelUs,
      Option<Double> worst) {}

  static ReportData of(
      Invocation invocation,
      Summary summary,
      Workload workload,
      Seq<LayerGroup> groups,
      Seq<Contender> backends,
      Seq<GroupSelection> selections,
      Outcome outcome) {
    Seq<String> kernels =
        outcome
            .records()
            .flatMap(record -> record.nanosByBackend().keySet())
            .map(BackendName::value)
            .distinct();
    Reasons reasons = Reasons.of(outcome.records());
    return new ReportData(
        invocation,
        Machine.present(),
        summary,
        summary.passed(),
        SummaryText.of(summary),
        workload.requests().map(ReportData::served),
        groups.map(ReportData::facts),
        backends.map(contender -> facts(contender, groups)),
        selections,
        kernels,
        reasons.all(),
        steps(outcome.records()),
        outcome
            .records()
            .map(
                record ->
                    batch(
                        record,
                        groups.map(LayerGroup::name).indexOf(record.group()),
                        backends.map(c -> c.backend().name()).indexOf(record.backend()),
                        kernels,
                        reasons)));
  }

  private static Served served(Request request) {
    return new Served(
        request.source().row(),
        request.source().timestamp(),
        request.promptTokens(),
        request.outputTokens(),
        request.images());
  }

  private static GroupFacts facts(LayerGroup group) {
    return new GroupFacts(
        group.name(),
        Summaries.mask(group.mask()),
        group.layers().size(),
        group.spec().numHeads(),
        group.spec().numKvHeads(),
        group.spec().headSize(),
        group.spec().dtype().label());
  }

  private static BackendFacts facts(Contender contender, Seq<LayerGroup> groups) {
    Seq<CacheFacts> caches = contender.specs().zipWith(groups, ReportData::facts);
    String status = contender.backend().execution().status().label();
    String why = contender.backend().execution().reason();
    String execution = why.isEmpty() ? status : status + " (" + why + ")";
    AttentionBackend<?> own =
        contender.backend() instanceof ShadowBackend<?, ?> shadowed
            ? shadowed.primary()
            : contender.backend();
    return own instanceof CompositeBackend<?, ?> composite
        ? new BackendFacts(
            composite.name().value(),
            Vector.of(composite.childA().name().value(), composite.childB().name().value()),
            Option.some(policy(composite.policy())),
            execution,
            caches)
        : new BackendFacts(
            contender.backend().name().value(), Vector.empty(), Option.none(), execution, caches);
  }

  private static String policy(RoutingPolicy policy) {
    return policy.getClass().getSimpleName()
        + (policy.splits() ? ", batches divided by request" : ", batches whole")
        + (policy.lowers() ? ", images lowered where exact" : ", no lowering");
  }

  private static CacheFacts facts(KvCacheSpec spec, LayerGroup group) {
    return new CacheFacts(
        group.name(),
        spec.layout().name(),
        spec.dtype().label(),
        spec.blockSize(),
        spec.blockBytes());
  }

  private static Seq<Seq<Part>> steps(Seq<StepRecord> records) {
    Map<Integer, Seq<Part>> steps = LinkedHashMap.empty();
    for (StepRecord record : records) {
      if (!steps.containsKey(record.step())) {
        steps = steps.put(record.step(), record.requests().map(ReportData::part));
      }
    }
    return steps.values().toVector();
  }

  private static Part part(Scheduled scheduled) {
    return new Part(scheduled.request().index(), scheduled.first(), scheduled.count());
  }

  private static Batch batch(
      StepRecord record, int group, int backend, Seq<String> kernels, Reasons reasons) {
    return new Batch(
        record.step(),
        group,
        backend,
        record.route().map(Route::label),
        record.route().map(ReportData::children),
        reasons.numbers(record.route()),
        record.buildNanos() / 1e3,
        record.writeNanos() / 1e3,
        record.forwardNanos() / 1e3,
        kernels.map(
            kernel ->
                record.nanosByBackend().getOrElse(BackendName.of(kernel), 0L).doubleValue() / 1e3),
        record.checks().map(Check::error).max());
  }

  private static String children(Route route) {
    return Vector.range(0, route.requests().size())
        .map(r -> route.requests().child(r))
        .map(Child::name)
        .mkString();
  }

  /** Every reason once, numbered as it first appears. */
  private record Reasons(Map<Reason, Integer> number) {
    static Reasons of(Seq<StepRecord> records) {
      Map<Reason, Integer> number = LinkedHashMap.empty();
      for (StepRecord record : records) {
        for (Route route : record.route()) {
          for (int r = 0; r < route.requests().size(); r++) {
            Reason reason = reason(route.requests(), r);
            number = number.containsKey(reason) ? number : number.put(reason, number.size());
          }
        }
      }
      return new Reasons(number);
    }

    private static Reason reason(RequestRoutes routes, int request) {
      return new Reason(routes.reason(request).name(), routes.text(request));
    }

    Seq<Reason> all() {
      return number.keySet().toVector();
    }

    Seq<Integer> numbers(Option<Route> route) {
      return route.isEmpty()
          ? Vector.empty()
          : Vector.range(0, route.get().requests().size())
              .map(r -> number.get(reason(route.get().requests(), r)).get());
    }
  }
}

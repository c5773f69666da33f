package bifocal.cli.replay;

import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.core.bench.TraceStep;
import bifocal.core.model.ModelCatalog;
import bifocal.core.model.ModelShape;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;

/** The steps of {@code replay} without options, for those who time them one by one. */
public final class ReplayedSteps {
  private ReplayedSteps() {}

  /** All of them, in order. */
  public static Seq<TraceStep> ofTheDefault() {
    Workload workload =
        Workload.of(
            TraceFile.shipped().window(ReplayCommand.FIRST, ReplayCommand.REQUESTS),
            ImageCount.isqrt,
            imageTokens(),
            ReplayCommand.MAX_BATCHED_TOKENS,
            ReplayCommand.SEED);
    ContinuousBatching schedule =
        new ContinuousBatching(workload, ReplayCommand.MAX_BATCHED_TOKENS, ReplayCommand.MAX_SEQS);
    List<TraceStep> steps = new ArrayList<>();
    for (List<Scheduled> step = schedule.next(request -> true);
        !step.isEmpty();
        step = schedule.next(request -> true)) {
      steps.add(new TraceStep(steps.size(), Vector.ofAll(step).map(scheduled -> part(scheduled))));
    }
    return Vector.ofAll(steps);
  }

  private static int imageTokens() {
    Option<ModelShape> model = ModelCatalog.shipped().find(ReplayCommand.MODEL);
    return model.flatMap(ModelShape::imageTokens).getOrElse(0);
  }

  private static TraceStep.Part part(Scheduled scheduled) {
    return new TraceStep.Part(
        scheduled.count(), scheduled.seqLen(), Vector.ofAll(scheduled.request().images()));
  }
}

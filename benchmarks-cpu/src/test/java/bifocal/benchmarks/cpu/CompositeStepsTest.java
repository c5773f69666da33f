package bifocal.benchmarks.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.bench.TraceStep;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

final class CompositeStepsTest {
  private static final TraceStep IMAGE =
      new TraceStep(
          3,
          Vector.of(
              new TraceStep.Part(1, 60, Vector.empty()),
              new TraceStep.Part(40, 40, Vector.of(4, 20, 25, 30))));
  private static final TraceStep TEXT =
      new TraceStep(4, Vector.of(new TraceStep.Part(1, 61, Vector.of(4, 20))));

  @Test
  void everyRouteIsTimedAndTheFastChildOnlyWhereItIsRight() {
    List<String> progress = new ArrayList<>();

    Seq<CompositeRow> rows =
        CompositeSteps.measure(
            new Contenders(Option.none()),
            new BenchmarkRequest(
                false, Option.none(), Option.none(), progress::add, Vector.of(IMAGE, TEXT)));

    assertThat(progress)
        .containsExactly("composite on a trace, step 3", "composite on a trace, step 4");
    assertThat(rows.filter(row -> row.threads() == 1))
        .extracting(
            row -> row.step() + " " + row.microseconds().keySet().toSortedSet().mkString(","))
        .containsExactly(
            "3 FLEX_ATTENTION,lowered,split,whole batch",
            "4 CPU_ATTN,FLEX_ATTENTION,lowered,split,whole batch");
    assertThat(rows).allMatch(row -> row.microseconds().values().forAll(time -> time > 0));
  }

  @Test
  void allStepsWithAnImageQueryAreTakenAndAsManyOthersFromTheWholeTrace() {
    Seq<TraceStep> trace =
        Vector.range(0, 100)
            .map(i -> new TraceStep(i, i % 50 == 10 ? IMAGE.parts() : TEXT.parts()));

    assertThat(CompositeSteps.chosen(trace).map(TraceStep::number)).containsExactly(10, 25, 60, 75);
  }
}

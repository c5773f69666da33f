package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.bench.TraceStep;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import org.junit.jupiter.api.Test;

class ReplayedStepsTest {
  @Test
  void theStepsAreThoseThatTheReadmeShowsOfTheDefaultReplay() {
    Seq<TraceStep> steps = ReplayedSteps.ofTheDefault();

    assertThat(steps).hasSize(672);
    assertThat(steps.map(TraceStep::queryTokens).sum().intValue()).isEqualTo(24_549);
    assertThat(steps.map(TraceStep::number)).containsExactlyElementsOf(Vector.range(0, 672));
    assertThat(steps).allMatch(step -> step.queryTokens() <= 2048 && step.parts().size() <= 16);
  }
}

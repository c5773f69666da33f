package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.cli.replay.TraceFile.TraceRequest;
import bifocal.cli.replay.Workload.Request;
import io.vavr.collection.Vector;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.SplittableRandom;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class ContinuousBatchingTest {
  private static Request request(int index, int prompt, int output, int... images) {
    return new Request(
        index,
        new TraceRequest(index, "", images.length / 2, prompt, output),
        prompt,
        output,
        images,
        0);
  }

  private static List<List<Scheduled>> run(ContinuousBatching schedule) {
    List<List<Scheduled>> steps = new ArrayList<>();
    for (List<Scheduled> step = schedule.next(r -> true);
        !step.isEmpty();
        step = schedule.next(r -> true)) {
      steps.add(step);
    }
    return steps;
  }

  @Test
  void stopsBeforeAnImageThatTheBudgetWouldCut() {
    Request request = request(0, 400, 1, 100, 355);

    assertThat(ContinuousBatching.chunk(request, 0, 256)).isEqualTo(100);
    assertThat(ContinuousBatching.chunk(request, 100, 256)).isEqualTo(256);
    assertThat(ContinuousBatching.chunk(request, 356, 256)).isEqualTo(44);
  }

  @Test
  void waitsWhenTheRestOfTheBudgetIsSmallerThanTheImageAtHand() {
    Request request = request(0, 400, 1, 100, 355);

    assertThat(ContinuousBatching.chunk(request, 100, 255)).isZero();
  }

  @Test
  void cutsPromptsWithoutImagesAnywhere() {
    assertThat(ContinuousBatching.chunk(request(0, 400, 1), 0, 7)).isEqualTo(7);
  }

  @Test
  void runningRequestsGoBeforeNewOnes() {
    ContinuousBatching schedule =
        new ContinuousBatching(
            new Workload(Vector.of(request(0, 10, 5), request(1, 10, 1), request(2, 10, 1)), 0),
            12,
            8);

    List<Scheduled> first = schedule.next(r -> true);
    List<Scheduled> second = schedule.next(r -> true);

    assertThat(first).extracting(Scheduled::count).containsExactly(10, 2);
    assertThat(second).extracting(s -> s.request().index()).containsExactly(0, 1, 2);
    assertThat(second).extracting(Scheduled::count).containsExactly(1, 8, 3);
  }

  @Test
  void theHeadOfTheQueueIsNotOvertakenWhenTheCacheIsFull() {
    ContinuousBatching schedule =
        new ContinuousBatching(
            new Workload(Vector.of(request(0, 90, 1), request(1, 5, 1)), 0), 64, 8);

    assertThat(schedule.next(r -> r.promptTokens() < 50)).isEmpty();
  }

  @Test
  void theLastTokenOfAnAnswerIsNeverAQuery() {
    List<List<Scheduled>> steps =
        run(new ContinuousBatching(new Workload(Vector.of(request(0, 3, 4)), 0), 64, 8));

    assertThat(steps).hasSize(4);
    assertThat(steps.getLast().getFirst().seqLen()).isEqualTo(6);
    assertThat(steps.getLast().getFirst().last()).isTrue();
  }

  @ParameterizedTest
  @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
  void everyPositionIsComputedOnceInOrderAndNoImageIsCut(long seed) {
    SplittableRandom random = new SplittableRandom(seed);
    List<Request> requests = new ArrayList<>();
    for (int i = 0; i < 12; i++) {
      int start = random.nextInt(1, 30);
      int end = start + random.nextInt(1, 16);
      requests.add(request(i, end + random.nextInt(2, 40), random.nextInt(1, 9), start, end));
    }
    ContinuousBatching schedule =
        new ContinuousBatching(new Workload(Vector.ofAll(requests), 0), 16, 3);

    Map<Integer, Integer> computed = new HashMap<>();
    for (List<Scheduled> step : run(schedule)) {
      assertThat(step).as("seed %d", seed).hasSizeLessThanOrEqualTo(3);
      assertThat(step.stream().mapToInt(Scheduled::count).sum()).isLessThanOrEqualTo(16);
      for (Scheduled scheduled : step) {
        int index = scheduled.request().index();
        assertThat(scheduled.first()).isEqualTo(computed.getOrDefault(index, 0));
        computed.put(index, scheduled.seqLen());
        int[] image = scheduled.request().images();
        boolean some = image[0] < scheduled.seqLen() && scheduled.first() <= image[1];
        boolean whole = scheduled.first() <= image[0] && image[1] < scheduled.seqLen();
        assertThat(!some || whole).as("image whole, seed %d", seed).isTrue();
      }
    }
    for (Request request : requests) {
      assertThat(computed).as("seed %d", seed).containsEntry(request.index(), request.positions());
    }
  }
}

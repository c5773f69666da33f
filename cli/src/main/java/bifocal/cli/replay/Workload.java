package bifocal.cli.replay;

import bifocal.cli.replay.TraceFile.TraceRequest;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import java.util.Arrays;
import java.util.SplittableRandom;

/**
 * The requests to serve: lengths from the trace, images placed by a seed.
 *
 * @param requests in the trace's order
 * @param imageTokens tokens of each image
 */
record Workload(Seq<Request> requests, int imageTokens) {

  /**
   * One request.
   *
   * @param index position in the workload
   * @param promptTokens tokens of the prompt, images included
   * @param outputTokens tokens of the answer
   * @param images first and last position of each image, in ascending order, never touching
   * @param imagesLeftOut images that the prompt has no room for
   */
  record Request(
      int index,
      TraceRequest source,
      int promptTokens,
      int outputTokens,
      int[] images,
      int imagesLeftOut) {

    /** Positions that are computed: the last token of the answer is never a query. */
    int positions() {
      return Math.toIntExact((long) promptTokens + outputTokens - 1);
    }

    int imageCount() {
      return images.length / 2;
    }
  }

  /** Positions of all requests together: no step can hold more. */
  int positions() {
    long all = requests.map(request -> (long) request.positions()).sum().longValue();
    return (int) Math.min(all, Integer.MAX_VALUE);
  }

  /**
   * Plans a window of a trace.
   *
   * @throws BifocalException {@code IMAGE_EXCEEDS_BUDGET} with the budget that would do
   */
  static Workload of(
      TraceFile trace, ImageCount count, int imageTokens, int maxBatchedTokens, long seed) {
    Seq<Request> requests =
        trace
            .requests()
            .zipWithIndex()
            .map(pair -> request(pair._2, pair._1, count, imageTokens, seed));
    if (imageTokens > maxBatchedTokens && requests.exists(r -> r.imageCount() > 0)) {
      throw BifocalException.of(
              ErrorCode.IMAGE_EXCEEDS_BUDGET,
              "images of " + imageTokens + " tokens, which one step must hold whole",
              "max-num-batched-tokens " + maxBatchedTokens,
              "at least " + imageTokens)
          .withRemedy("pass --max-num-batched-tokens " + imageTokens + " or more");
    }
    return new Workload(requests, imageTokens);
  }

  private static Request request(
      int index, TraceRequest source, ImageCount count, int imageTokens, long seed) {
    int wanted = imageTokens == 0 ? 0 : count.of(source.numImages());
    int room = imageTokens == 0 ? 0 : (int) ((source.contextTokens() - 1) / (imageTokens + 1L));
    int placed = Math.min(wanted, room);
    SplittableRandom random = new SplittableRandom(seed * 31 + source.row());
    return new Request(
        index,
        source,
        source.contextTokens(),
        source.generatedTokens(),
        place(placed, imageTokens, source.contextTokens(), random),
        wanted - placed);
  }

  /** Images with at least one token of text before, between and after them. */
  private static int[] place(int count, int length, int prompt, SplittableRandom random) {
    int slack = prompt - count * length - (count + 1);
    int[] gaps = new int[count];
    for (int i = 0; i < count; i++) {
      gaps[i] = random.nextInt(slack + 1);
    }
    Arrays.sort(gaps);
    int[] images = new int[2 * count];
    for (int i = 0; i < count; i++) {
      images[2 * i] = gaps[i] + i * length + i + 1;
      images[2 * i + 1] = images[2 * i] + length - 1;
    }
    return images;
  }
}

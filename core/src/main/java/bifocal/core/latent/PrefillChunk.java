package bifocal.core.latent;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * Consecutive requests whose keys are gathered together.
 *
 * @param first first request
 * @param end request behind the last
 */
public record PrefillChunk(int first, int end) {

  /** Cuts requests of these lengths so that no chunk is longer than a bound. */
  public static Seq<PrefillChunk> plan(Seq<Integer> lengths, int most) {
    Seq<PrefillChunk> chunks = Vector.empty();
    int first = 0;
    long sum = 0;
    for (int request = 0; request < lengths.size(); request++) {
      sum += lengths.get(request);
      if (sum > most && request > first) {
        chunks = chunks.append(new PrefillChunk(first, request));
        first = request;
        sum = lengths.get(request);
      }
    }
    return first < lengths.size() ? chunks.append(new PrefillChunk(first, lengths.size())) : chunks;
  }
}

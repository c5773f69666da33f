package bifocal.core.bench;

import io.vavr.collection.Seq;

/**
 * One step of a trace that was scheduled: what each request of it computes.
 *
 * @param number from 0
 */
public record TraceStep(int number, Seq<Part> parts) {

  /**
   * One request of a step.
   *
   * @param queryLen queries, the last of the keys
   * @param seqLen keys there are after the step's were written
   * @param images first and last position of each image of the prompt, in order
   */
  public record Part(int queryLen, int seqLen, Seq<Integer> images) {}

  /** Queries of all requests. */
  public int queryTokens() {
    return parts.map(Part::queryLen).sum().intValue();
  }
}

package bifocal.core.latent;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * How prefills of a latent layer read their earlier context. It is a value: one planner serves
 * several builders at once, and each plan belongs to the step that asked for it.
 *
 * @param rows rows of the workspace, of all ranks together
 * @param alignment rows that a piece of context must start at a multiple of
 * @param sharing how sequences are shared among ranks
 */
public record PrefillPlanner(int rows, int alignment, SharedSequence sharing) {

  /**
   * Plans the prefills of one step.
   *
   * @param contexts earlier tokens of each request
   * @param queryLens query tokens of each request
   * @return the plan, absent when no request has earlier context
   * @throws BifocalException {@code SHAPE_MISMATCH} when there are not equally many of both, {@code
   *     INVALID_PARAMETER} when the workspace is smaller than the alignment
   */
  public Option<PrefillPlan> plan(Seq<Integer> contexts, Seq<Integer> queryLens) {
    if (contexts.size() != queryLens.size()) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "contexts of a prefill", contexts.size(), queryLens.size());
    }
    Seq<ContextChunk> chunks = ContextChunk.plan(contexts, rows, alignment, sharing);
    return Option.when(
        chunks.nonEmpty(),
        () -> new PrefillPlan(chunks, PrefillPlan.withoutContext(contexts, queryLens)));
  }
}

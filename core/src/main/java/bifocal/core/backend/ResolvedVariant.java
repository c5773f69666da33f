package bifocal.core.backend;

import bifocal.core.graph.GraphSupport;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * The variant of a backend that serves one request, resolved once with all of the layer's
 * parameters.
 *
 * @param version its name, for instance {@code FA4}; empty for a backend of one variant
 * @param capabilities what this variant can do on the request's device
 * @param graphSupport batches it runs inside a captured graph
 * @param preferredBlockSize tokens per block it wants when nobody pins a size, absent when the
 *     declared sizes say enough
 * @param notes how the version came about, where that is worth knowing
 * @param refusal why no version serves the request
 */
public record ResolvedVariant(
    String version,
    Capabilities capabilities,
    GraphSupport graphSupport,
    Option<Integer> preferredBlockSize,
    Seq<String> notes,
    Option<InvalidReason> refusal) {

  /** A variant that needs no explanation. */
  public static ResolvedVariant of(
      String version, Capabilities capabilities, GraphSupport graphSupport) {
    return new ResolvedVariant(
        version, capabilities, graphSupport, Option.none(), Vector.empty(), Option.none());
  }

  /** The same variant, which wants blocks of this size unless another is pinned. */
  public ResolvedVariant preferringBlocksOf(int tokens) {
    return new ResolvedVariant(
        version, capabilities, graphSupport, Option.some(tokens), notes, refusal);
  }

  /** The same variant with remarks on how it was resolved. */
  public ResolvedVariant noting(Seq<String> remarks) {
    return new ResolvedVariant(
        version, capabilities, graphSupport, preferredBlockSize, notes.appendAll(remarks), refusal);
  }

  /** The same variant, which does not serve the request after all. */
  public ResolvedVariant refusing(InvalidReason reason) {
    return new ResolvedVariant(
        version, capabilities, graphSupport, preferredBlockSize, notes, Option.some(reason));
  }
}

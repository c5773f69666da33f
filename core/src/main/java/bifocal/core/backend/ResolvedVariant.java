package bifocal.core.backend;

import bifocal.core.cache.KvCacheDtype;
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
 * @param cacheType type that the cache gets in place of the one asked for, absent when that stands
 * @param decodes which requests count as decodes, absent where the backend draws no such line
 */
public record ResolvedVariant(
    String version,
    Capabilities capabilities,
    GraphSupport graphSupport,
    Option<Integer> preferredBlockSize,
    Seq<String> notes,
    Option<InvalidReason> refusal,
    Option<KvCacheDtype> cacheType,
    Option<DecodeThreshold> decodes) {

  /** A variant that takes the cache as it is asked for, and draws no line between phases. */
  public ResolvedVariant(
      String version,
      Capabilities capabilities,
      GraphSupport graphSupport,
      Option<Integer> preferredBlockSize,
      Seq<String> notes,
      Option<InvalidReason> refusal) {
    this(
        version,
        capabilities,
        graphSupport,
        preferredBlockSize,
        notes,
        refusal,
        Option.none(),
        Option.none());
  }

  /** A variant that needs no explanation. */
  public static ResolvedVariant of(
      String version, Capabilities capabilities, GraphSupport graphSupport) {
    return new ResolvedVariant(
        version, capabilities, graphSupport, Option.none(), Vector.empty(), Option.none());
  }

  /** The same variant, which wants blocks of this size unless another is pinned. */
  public ResolvedVariant preferringBlocksOf(int tokens) {
    return new ResolvedVariant(
        version,
        capabilities,
        graphSupport,
        Option.some(tokens),
        notes,
        refusal,
        cacheType,
        decodes);
  }

  /** The same variant with remarks on how it was resolved. */
  public ResolvedVariant noting(Seq<String> remarks) {
    return new ResolvedVariant(
        version,
        capabilities,
        graphSupport,
        preferredBlockSize,
        notes.appendAll(remarks),
        refusal,
        cacheType,
        decodes);
  }

  /** The same variant, which does not serve the request after all. */
  public ResolvedVariant refusing(InvalidReason reason) {
    return new ResolvedVariant(
        version,
        capabilities,
        graphSupport,
        preferredBlockSize,
        notes,
        Option.some(reason),
        cacheType,
        decodes);
  }

  /** The same variant, which gives the cache another type than the one asked for. */
  public ResolvedVariant caching(KvCacheDtype type) {
    return new ResolvedVariant(
        version,
        capabilities,
        graphSupport,
        preferredBlockSize,
        notes,
        refusal,
        Option.some(type),
        decodes);
  }

  /** The same variant, which says what it runs as decodes. */
  public ResolvedVariant dividing(DecodeThreshold threshold) {
    return new ResolvedVariant(
        version,
        capabilities,
        graphSupport,
        preferredBlockSize,
        notes,
        refusal,
        cacheType,
        Option.some(threshold));
  }
}

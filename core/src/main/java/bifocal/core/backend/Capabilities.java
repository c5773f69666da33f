package bifocal.core.backend;

/**
 * What a backend supports, in two parts. One declaration drives validation, documentation and
 * dispatch.
 *
 * @param reference what the reference feature tables and their text say
 * @param extensions what runs here beyond that
 * @param all everything that runs: the reference and the extensions
 */
public record Capabilities(FeatureSet reference, FeatureSet extensions, FeatureSet all) {

  /** Capabilities of two parts. */
  public Capabilities(FeatureSet reference, FeatureSet extensions) {
    this(reference, extensions, reference.union(extensions));
  }

  /** Capabilities without extensions. */
  public static Capabilities of(FeatureSet reference) {
    return new Capabilities(reference, FeatureSet.NONE, reference);
  }
}

package bifocal.core.backend;

/**
 * What a backend supports, in two parts. One declaration drives validation, documentation and
 * dispatch.
 *
 * @param reference what the reference feature tables and their text say
 * @param extensions what runs here beyond that
 */
public record Capabilities(FeatureSet reference, FeatureSet extensions) {

  /** Capabilities without extensions. */
  public static Capabilities of(FeatureSet reference) {
    return new Capabilities(reference, FeatureSet.NONE);
  }

  /** Everything that runs: the reference and the extensions. */
  public FeatureSet all() {
    return reference.union(extensions);
  }
}

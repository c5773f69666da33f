package bifocal.composite;

import bifocal.core.backend.FeatureSet;

/** A backend with a name and features, for tests that only look at those. */
public final class PlainBackend extends SummingBackend {
  /** Features of a backend that nobody asked for something special. */
  public static final FeatureSet FEATURES = PLAIN;

  public PlainBackend(String name) {
    super(name, new Journal());
  }

  public PlainBackend(String name, FeatureSet features) {
    this(name);
    with(features);
  }
}

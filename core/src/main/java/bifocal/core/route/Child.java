package bifocal.core.route;

/** The two backends of a composite. */
public enum Child {
  /**
   * The general child: it can do every mask the composite claims, and it alone writes the cache.
   */
  A,
  /** The fast child. */
  B
}

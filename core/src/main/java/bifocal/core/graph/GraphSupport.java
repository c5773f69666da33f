package bifocal.core.graph;

/** Which batches a backend can run inside a captured graph, weakest first. */
public enum GraphSupport {
  /** None. */
  NEVER,
  /** Batches in which every request has one query. */
  UNIFORM_SINGLE_TOKEN_DECODE,
  /** Batches in which all requests have equally many queries. */
  UNIFORM_BATCH,
  /** Any batch. */
  ALWAYS;

  /** The weaker of two. */
  public GraphSupport weakest(GraphSupport other) {
    return compareTo(other) <= 0 ? this : other;
  }
}

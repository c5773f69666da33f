package bifocal.core.graph;

import bifocal.core.batch.CommonAttentionMetadata;

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

  /** Whether a batch is of the kind that may be captured. Padding never decides. */
  public boolean covers(CommonAttentionMetadata batch) {
    return switch (this) {
      case NEVER -> false;
      case UNIFORM_SINGLE_TOKEN_DECODE -> batch.maxQueryLen() == 1 && uniform(batch);
      case UNIFORM_BATCH -> batch.maxQueryLen() >= 1 && uniform(batch);
      case ALWAYS -> true;
    };
  }

  private static boolean uniform(CommonAttentionMetadata batch) {
    boolean uniform = true;
    for (int r = 0; r < batch.live(); r++) {
      uniform &= batch.queryLen(r) == batch.maxQueryLen();
    }
    return uniform;
  }
}

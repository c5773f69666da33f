package bifocal.core.bench;

import bifocal.core.backend.BackendName;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;

/**
 * How long one child of a composite took for one class of requests.
 *
 * @param child its name
 * @param dtype of queries, keys and values
 * @param headSize of queries and keys
 * @param phase what the requests were
 * @param queryLen query tokens of each request
 * @param seqLen keys of each request
 * @param nanosPerPair nanoseconds for each query head and each causal pair of a query and a key
 */
public record ChildTime(
    BackendName child,
    DType dtype,
    int headSize,
    Phase phase,
    int queryLen,
    int seqLen,
    double nanosPerPair) {

  /** What a request is in a step. */
  public enum Phase {
    /** One query token. */
    DECODE,
    /** Several query tokens that see what is causal. */
    PREFILL,
    /** Query tokens that see later keys of their image. */
    IMAGE
  }

  public ChildTime {
    if (headSize < 1 || queryLen < 1 || seqLen < queryLen) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "measured requests",
          "head size " + headSize + ", " + queryLen + " queries of " + seqLen + " keys",
          "sizes of at least 1, and no more queries than keys");
    }
    if (!(nanosPerPair > 0) || Double.isInfinite(nanosPerPair)) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "measured time", nanosPerPair, "a positive number");
    }
  }
}

package bifocal.core.backend;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * The largest batch a workspace is planned for.
 *
 * @param maxRequests requests of one step, padding included
 * @param maxQueryTokens query tokens of one step
 * @param maxSeqLen keys of one request
 */
public record BatchLimits(int maxRequests, int maxQueryTokens, int maxSeqLen) {
  public BatchLimits {
    if (maxRequests < 1 || maxQueryTokens < 1 || maxSeqLen < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "largest batch",
          maxRequests + " requests, " + maxQueryTokens + " query tokens, " + maxSeqLen + " keys",
          "at least one of each");
    }
  }
}

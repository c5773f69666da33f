package bifocal.core.backend;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * Which requests of a batch a backend runs as decodes, before drafted tokens widen the line.
 *
 * @param lengths which query lengths may stand together among the decodes
 * @param tokens the longest query that still counts as a decode
 */
public record DecodeThreshold(QueryLengths lengths, int tokens) {

  /** Query lengths among the decodes of one batch. */
  public enum QueryLengths {
    /** One token each. */
    SINGLE,
    /** Equally many tokens each. */
    UNIFORM,
    /** Any number of tokens each. */
    VARYING
  }

  public DecodeThreshold {
    if (tokens < 1 || (lengths == QueryLengths.SINGLE && tokens != 1)) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "decode threshold",
          tokens,
          lengths == QueryLengths.SINGLE ? "exactly 1" : "at least 1");
    }
  }

  /** Single tokens. */
  public static DecodeThreshold single() {
    return new DecodeThreshold(QueryLengths.SINGLE, 1);
  }

  /** Equal lengths up to some number of tokens. */
  public static DecodeThreshold uniform(int tokens) {
    return new DecodeThreshold(QueryLengths.UNIFORM, tokens);
  }

  /** Any lengths up to some number of tokens. */
  public static DecodeThreshold varying(int tokens) {
    return new DecodeThreshold(QueryLengths.VARYING, tokens);
  }
}

package bifocal.core.latent;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * A sequence whose cache is shared out among ranks in turns of so many tokens.
 *
 * @param ranks ranks that share the sequence; 1 for a sequence of one rank
 * @param turn tokens that go to a rank at a time
 */
public record SharedSequence(int ranks, int turn) {
  /** A sequence that one rank has alone. */
  public static final SharedSequence ALONE = new SharedSequence(1, 1);

  public SharedSequence {
    if (ranks < 1 || turn < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "ranks and tokens of a turn",
          ranks + " and " + turn,
          "at least 1 each");
    }
  }

  /** The rank that has a token. */
  public int rank(int token) {
    return token / turn % ranks;
  }

  /** The place of a token among those of its rank. */
  public int local(int token) {
    return token / round() * turn + token % turn;
  }

  /** Tokens of a sequence that a rank has. */
  public int localLength(int length, int rank) {
    int rest = length % round() - rank * turn;
    return length / round() * turn + Math.clamp(rest, 0, turn);
  }

  /** Rows that every rank sets aside for a sequence, so that all have equally many. */
  public int paddedLength(int length) {
    return Math.ceilDiv(length, round()) * turn;
  }

  /** Tokens of one turn of every rank. */
  public int round() {
    return Math.multiplyExact(ranks, turn);
  }
}

package bifocal.core.latent;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * Earlier context of consecutive requests that prefills attend to in one go, after it was gathered
 * into a workspace.
 *
 * @param pieces of each request, in the order of the requests
 */
public record ContextChunk(Seq<Piece> pieces) {

  /**
   * A part of one request's context.
   *
   * @param request index in the batch
   * @param start first row
   * @param length rows
   */
  public record Piece(int request, int start, int length) {}

  /** Whether the chunk begins where another left a request off. */
  public boolean continues() {
    return pieces.head().start() > 0;
  }

  /**
   * Where the rows of the chunk lie once every rank's share was gathered: each rank sends equally
   * many rows, padding at the end of each piece included.
   *
   * @return rows of what was gathered; for each piece those of the first rank, then those of the
   *     next, without padding
   */
  public int[] gathered(SharedSequence sharing) {
    int padded = pieces.map(piece -> sharing.paddedLength(piece.length())).sum().intValue();
    int[] rows = new int[pieces.map(Piece::length).sum().intValue()];
    int next = 0;
    int start = 0;
    for (Piece piece : pieces) {
      for (int rank = 0; rank < sharing.ranks(); rank++) {
        for (int row = 0; row < sharing.localLength(piece.length(), rank); row++) {
          rows[next++] = rank * padded + start + row;
        }
      }
      start += sharing.paddedLength(piece.length());
    }
    return rows;
  }

  /**
   * Cuts the contexts of a batch. A whole rest goes into a chunk while it fits; one that does not
   * is cut at a multiple of the alignment, which ends the chunk. A request without context ends a
   * chunk, too, and is in none.
   *
   * @param contexts earlier tokens of each request
   * @param rows rows of the workspace, of all ranks together
   * @param alignment rows that a piece must start at a multiple of
   * @param sharing how sequences are shared among ranks
   */
  public static Seq<ContextChunk> plan(
      Seq<Integer> contexts, int rows, int alignment, SharedSequence sharing) {
    return new Planner(contexts, rows, alignment, sharing).plan();
  }

  private static final class Planner {
    private final Seq<Integer> contexts;
    private final SharedSequence sharing;
    private final int alignment;
    private final int budget;
    private final int most;
    private Seq<ContextChunk> chunks = Vector.empty();
    private Seq<Piece> open = Vector.empty();
    private int left;

    private Planner(Seq<Integer> contexts, int rows, int alignment, SharedSequence sharing) {
      this.contexts = contexts;
      this.sharing = sharing;
      this.alignment =
          sharing.ranks() == 1 ? alignment : leastCommonMultiple(alignment, sharing.round());
      this.budget = rows / sharing.ranks();
      this.most = rows / this.alignment * this.alignment;
      this.left = budget;
      if (most == 0) {
        throw BifocalException.of(
            ErrorCode.INVALID_PARAMETER,
            "chunked prefill workspace ("
                + rows
                + " rows) is smaller than the context chunk alignment ("
                + this.alignment
                + " rows)");
      }
    }

    private Seq<ContextChunk> plan() {
      for (int request = 0; request < contexts.size(); request++) {
        if (contexts.get(request) == 0) {
          close();
        }
        int start = 0;
        while (start < contexts.get(request)) {
          start += take(request, start, contexts.get(request) - start);
        }
      }
      close();
      return chunks;
    }

    /** Takes as much of a request's rest as goes into the open chunk. */
    private int take(int request, int start, int rest) {
      if (cost(rest) <= left) {
        add(new Piece(request, start, rest));
        return rest;
      }
      int part = longestPart(rest);
      if (part > 0) {
        add(new Piece(request, start, part));
      }
      close();
      return part;
    }

    /** The longest aligned part that fits and leaves something over. */
    private int longestPart(int rest) {
      int part = Math.min(most, (rest - 1) / alignment * alignment);
      while (part > 0 && cost(part) > left) {
        part -= alignment;
      }
      return part;
    }

    private int cost(int rows) {
      return sharing.ranks() == 1 ? rows : sharing.paddedLength(rows);
    }

    private void add(Piece piece) {
      open = open.append(piece);
      left -= cost(piece.length());
    }

    private void close() {
      if (open.nonEmpty()) {
        chunks = chunks.append(new ContextChunk(open));
      }
      open = Vector.empty();
      left = budget;
    }

    private static int leastCommonMultiple(int a, int b) {
      int x = a;
      int y = b;
      while (y != 0) {
        int rest = x % y;
        x = y;
        y = rest;
      }
      return Math.multiplyExact(a / x, b);
    }
  }
}

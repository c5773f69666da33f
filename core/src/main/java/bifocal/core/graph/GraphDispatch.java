package bifocal.core.graph;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * Finds the captured graph of a batch by its size.
 *
 * @param mode the resolved mode
 * @param sizes captured numbers of tokens, ascending
 * @param decodeLength queries of one request in a batch of decodes
 * @param maxRequests most requests of a batch
 */
public record GraphDispatch(GraphMode mode, Seq<Integer> sizes, int decodeLength, int maxRequests) {

  public GraphDispatch {
    if (decodeLength < 1 || maxRequests < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "queries of a decode and requests of a batch",
          decodeLength + ", " + maxRequests,
          "at least 1");
    }
  }

  /**
   * What a batch runs.
   *
   * @param mode {@code NONE}, {@code PIECEWISE} or {@code FULL}
   * @param tokens tokens of the captured graph, or of the batch itself where none fits
   * @param requests requests of the captured graph, absent where any number will do
   * @param uniform whether the graph is for batches of decodes alone
   */
  public record Found(GraphMode mode, int tokens, Option<Integer> requests, boolean uniform) {}

  /** A dispatch over modes that were captured. */
  public static GraphDispatch of(
      GraphMode mode,
      Seq<Integer> sizes,
      int decodeLength,
      int maxRequests,
      boolean piecewiseCompiled) {
    boolean needsPieces =
        mode.ofDecodes() == GraphMode.PIECEWISE || mode.ofMixed() == GraphMode.PIECEWISE;
    if (needsPieces && !piecewiseCompiled) {
      throw BifocalException.of(
          ErrorCode.NOT_CAPTURABLE, "graph mode", mode, "a model that is compiled in pieces");
    }
    return new GraphDispatch(mode, sizes.sorted(), decodeLength, maxRequests);
  }

  /**
   * The graph of a batch.
   *
   * @param tokens query tokens
   * @param uniformDecode whether every request has the queries of a decode
   * @param fullAllowed whether the batch may run a whole graph at all
   */
  public Found find(int tokens, boolean uniformDecode, boolean fullAllowed) {
    Option<Integer> padded = sizes.find(size -> size >= tokens);
    if (mode == GraphMode.NONE || padded.isEmpty()) {
      return new Found(GraphMode.NONE, tokens, Option.none(), false);
    }
    int size = padded.get();
    boolean uniform = mode.isPair() && uniformDecode;
    GraphMode wanted = uniform ? mode.ofDecodes() : mode.ofMixed();
    if (wanted == GraphMode.FULL && fullAllowed && (!uniform || capturedForDecodes(size))) {
      int requests = uniform ? size / decodeLength : size;
      return new Found(GraphMode.FULL, size, Option.some(Math.min(requests, maxRequests)), uniform);
    }
    return mode.ofMixed() == GraphMode.PIECEWISE
        ? new Found(GraphMode.PIECEWISE, size, Option.none(), false)
        : new Found(GraphMode.NONE, tokens, Option.none(), false);
  }

  private boolean capturedForDecodes(int size) {
    return size >= decodeLength && size <= decodeLength * maxRequests;
  }
}

package bifocal.conformance;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * A batch before memory: who asks how much, and where the images are.
 *
 * @param requests live requests
 * @param padding requests behind them, whose fields a rig fills with rubbish
 * @param independentKeys whether queries and keys are different sequences
 */
public record BatchPlan(Seq<Request> requests, int padding, boolean independentKeys) {

  /**
   * One request.
   *
   * @param sequence number of its sequence; its cached tokens are the same in every batch
   * @param queryLen queries
   * @param seqLen keys after this step
   * @param images in any order
   */
  public record Request(int sequence, int queryLen, int seqLen, Seq<Image> images) {
    @Override
    public String toString() {
      String text = "#" + sequence + ":" + queryLen + "/" + seqLen;
      return images.isEmpty() ? text : text + images.mkString("{", " ", "}");
    }
  }

  /** An image's first and last position, absolute and inclusive. */
  public record Image(int first, int last) {
    @Override
    public String toString() {
      return first + "-" + last;
    }
  }

  /** Live requests given as pairs of query_len and seq_len, numbered from 0. */
  public static BatchPlan of(int... queryAndSeqLens) {
    Seq<Request> requests = Vector.empty();
    for (int i = 0; i < queryAndSeqLens.length; i += 2) {
      requests =
          requests.append(
              new Request(i / 2, queryAndSeqLens[i], queryAndSeqLens[i + 1], Vector.empty()));
    }
    return new BatchPlan(requests, 0, false);
  }

  /** One request with images given as pairs of first and last position. */
  public static BatchPlan withImages(int queryLen, int seqLen, int... bounds) {
    Seq<Image> images = Vector.empty();
    for (int i = 0; i < bounds.length; i += 2) {
      images = images.append(new Image(bounds[i], bounds[i + 1]));
    }
    return new BatchPlan(Vector.of(new Request(0, queryLen, seqLen, images)), 0, false);
  }

  /** The same batch with so many requests of padding. */
  public BatchPlan padded(int count) {
    return new BatchPlan(requests, count, independentKeys);
  }

  /** The same lengths, with keys of another sequence than the queries'. */
  public BatchPlan withIndependentKeys() {
    return new BatchPlan(requests, padding, true);
  }

  /** Queries of all live requests. */
  public int queryTokens() {
    return requests.map(Request::queryLen).sum().intValue();
  }

  @Override
  public String toString() {
    return requests.mkString("[", ", ", "]")
        + (padding == 0 ? "" : " + " + padding + " padding")
        + (independentKeys ? ", independent keys" : "");
  }
}

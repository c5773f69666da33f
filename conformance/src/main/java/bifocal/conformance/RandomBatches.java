package bifocal.conformance;

import bifocal.conformance.BatchPlan.Image;
import bifocal.conformance.BatchPlan.Request;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/**
 * Random batches that a seed decides: decodes, chunks and whole prompts side by side, requests
 * without queries, images that touch, images of one token, images in the cached part, images beyond
 * the sequence, in any order. No image is cut, so every batch is one that a host may run.
 */
public final class RandomBatches {
  private final Random random;
  private final int maxRequests;
  private final int maxSeqLen;

  /**
   * A stream of batches.
   *
   * @param maxRequests most live requests of a batch
   * @param maxSeqLen most keys of a request
   */
  public RandomBatches(long seed, int maxRequests, int maxSeqLen) {
    this.random = new Random(seed);
    this.maxRequests = maxRequests;
    this.maxSeqLen = maxSeqLen;
  }

  /** The next batch, without images. */
  public BatchPlan next() {
    return next(false);
  }

  /** The next batch, with images in most requests. */
  public BatchPlan nextWithImages() {
    return next(true);
  }

  private BatchPlan next(boolean images) {
    Seq<Request> requests = Vector.empty();
    int count = random.nextInt(1, maxRequests + 1);
    for (int sequence = 0; sequence < count; sequence++) {
      int seqLen = random.nextInt(1, maxSeqLen + 1);
      requests =
          requests.append(
              new Request(
                  sequence,
                  queryLen(seqLen),
                  seqLen,
                  images && random.nextInt(4) > 0 ? images(seqLen) : Vector.empty()));
    }
    return new BatchPlan(requests, random.nextInt(3), false);
  }

  private int queryLen(int seqLen) {
    return switch (random.nextInt(6)) {
      case 0 -> 0;
      case 1, 2 -> 1;
      case 3 -> seqLen;
      case 4 -> Math.min(seqLen, random.nextInt(2, 5));
      case 5 -> random.nextInt(1, seqLen + 1);
      default -> throw new IllegalStateException("six cases");
    };
  }

  /** Disjoint images inside the sequence, and sometimes one beyond it, in any order. */
  private Seq<Image> images(int seqLen) {
    Seq<Image> images = Vector.empty();
    int at = random.nextInt(3) == 0 ? 0 : random.nextInt(seqLen);
    while (at < seqLen && images.size() < 5) {
      int length = random.nextInt(3) == 0 ? 1 : random.nextInt(1, seqLen - at + 1);
      images = images.append(new Image(at, at + length - 1));
      at += length + (random.nextBoolean() ? 0 : random.nextInt(1, 9));
    }
    if (random.nextInt(4) == 0) {
      images = images.append(new Image(seqLen + 2, seqLen + 9));
    }
    List<Image> order = new ArrayList<>(images.asJava());
    Collections.shuffle(order, random);
    return Vector.ofAll(order);
  }
}

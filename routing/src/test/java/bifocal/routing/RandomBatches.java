package bifocal.routing;

import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;

/** Batches and masks drawn from a seed: small enough to enumerate, odd enough to matter. */
final class RandomBatches {
  private static final int LONGEST = 20;

  private final Random random;

  RandomBatches(long seed) {
    this.random = new Random(seed);
  }

  /** Any mask that knows how to join images in the given way. */
  AttentionMask mask(ImageMask mode) {
    AttentionMask mask = AttentionMask.CAUSAL.withImages(mode);
    return random.nextInt(5) == 0 ? mask : mask.withWindow(1 + random.nextInt(12));
  }

  boolean flip() {
    return random.nextBoolean();
  }

  Lowering lowering() {
    return Lowering.values()[random.nextInt(Lowering.values().length)];
  }

  /** Any batch: some with a cut image, some padded with rubbish. */
  Batch batch() {
    boolean whole = random.nextInt(8) > 0;
    List<Batch.Request> requests = new ArrayList<>();
    int live = random.nextInt(6);
    for (int r = 0; r < live; r++) {
      requests.add(request(whole));
    }
    int padding = random.nextInt(3);
    for (int r = 0; r < padding; r++) {
      requests.add(rubbish());
    }
    return new Batch(live, requests);
  }

  /** A request without a cut image that has queries. */
  Batch.Request wholeRequest() {
    Batch.Request request = request(true);
    while (request.queryLen() == 0) {
      request = request(true);
    }
    return request;
  }

  private Batch.Request request(boolean whole) {
    int seqLen = random.nextInt(LONGEST + 1);
    int queryLen =
        switch (random.nextInt(4)) {
          case 0 -> Math.min(1, seqLen);
          case 1 -> seqLen;
          default -> random.nextInt(seqLen + 1);
        };
    List<int[]> images = new ArrayList<>();
    int at = random.nextInt(6);
    while (at < seqLen + 4 && images.size() < 5 && random.nextInt(8) > 0) {
      int last = at + imageLength() - 1;
      if (whole && queryLen > 0 && at < seqLen) {
        last = Math.min(last, seqLen - 1);
      }
      images.add(new int[] {at, last});
      at = last + 1 + (random.nextInt(3) == 0 ? 0 : random.nextInt(5));
    }
    Collections.shuffle(images, random);
    return new Batch.Request(
        queryLen, seqLen, images.stream().flatMapToInt(Arrays::stream).toArray());
  }

  private int imageLength() {
    return switch (random.nextInt(4)) {
      case 0 -> 1;
      case 1 -> 2 + random.nextInt(2);
      default -> 1 + random.nextInt(12);
    };
  }

  /** What a finished request may have left in a padded row. */
  private Batch.Request rubbish() {
    return switch (random.nextInt(3)) {
      case 0 -> new Batch.Request(random.nextInt(), random.nextInt(), 7, 3, -5, 1_000_000);
      case 1 -> new Batch.Request(7, 3, 0, Integer.MAX_VALUE, 0, 2);
      default -> request(false);
    };
  }
}

package bifocal.composite;

import bifocal.core.batch.CommonAttentionMetadata;
import java.util.Random;

/** Small batches of every shape: idle requests, chunks, decodes, images, padding. */
final class RandomBatches {
  private RandomBatches() {}

  static CommonAttentionMetadata of(Random random) {
    int requests = 1 + random.nextInt(7);
    int[] queryLens = new int[requests];
    int[] seqLens = new int[requests];
    int[][] images = new int[requests][];
    for (int r = 0; r < requests; r++) {
      seqLens[r] = 1 + random.nextInt(30);
      queryLens[r] = random.nextInt(4) == 0 ? 1 : random.nextInt(seqLens[r] + 1);
      images[r] = random.nextBoolean() ? images(random, seqLens[r]) : new int[0];
    }
    queryLens[random.nextInt(requests)] = 1;
    return TestBatch.of(queryLens, seqLens).images(images).build();
  }

  /** Whole images of a sequence, apart or touching. */
  private static int[] images(Random random, int seqLen) {
    int[] bounds = new int[0];
    int next = random.nextInt(seqLen);
    while (next < seqLen && bounds.length < 6) {
      int last = next + random.nextInt(seqLen - next);
      bounds = java.util.Arrays.copyOf(bounds, bounds.length + 2);
      bounds[bounds.length - 2] = next;
      bounds[bounds.length - 1] = last;
      next = last + 1 + random.nextInt(3);
    }
    return bounds;
  }
}

package bifocal.cuda.bench;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * One workload: equal sequences of a layer in bf16 over blocks of 64 slots.
 *
 * @param heads query heads
 * @param kvHeads KV heads
 * @param headSize elements of a head
 * @param batch sequences
 * @param keys keys of a sequence
 * @param decode whether each sequence has one query, else all of them
 * @param cache type of the cache
 * @param window sliding window, 0 for none
 * @param images first and last position of each image of a sequence, one after the other
 * @param chunk queries of each sequence, its last ones, when it has neither one nor all
 * @param plain sequences without images, the first ones
 */
record GpuWork(
    int heads,
    int kvHeads,
    int headSize,
    int batch,
    int keys,
    boolean decode,
    KvCacheDtype cache,
    int window,
    Seq<Integer> images,
    int chunk,
    int plain) {
  static final int BLOCK_SIZE = 64;

  private static final int CHUNK = 512;
  private static final Seq<Integer> FOUR_IMAGES =
      Vector.of(200, 455, 600, 855, 1100, 1355, 1600, 1855);

  static GpuWork prefill(int heads, int kvHeads, int headSize, int batch, int keys) {
    return new GpuWork(
        heads, kvHeads, headSize, batch, keys, false, KvCacheDtype.AUTO, 0, Vector.empty(), 0, 0);
  }

  static GpuWork decode(
      int heads, int kvHeads, int headSize, int batch, int keys, KvCacheDtype cache) {
    return new GpuWork(heads, kvHeads, headSize, batch, keys, true, cache, 0, Vector.empty(), 0, 0);
  }

  /** Chunks of 512 tokens, the last of each sequence; the last sequence has an image in its own. */
  static GpuWork chunks(int heads, int kvHeads, int headSize, int batch, int keys) {
    return new GpuWork(
        heads,
        kvHeads,
        headSize,
        batch,
        keys,
        false,
        KvCacheDtype.AUTO,
        0,
        Vector.of(keys - 400, keys - 145),
        CHUNK,
        batch - 1);
  }

  GpuWork withWindow(int keysSeen) {
    return new GpuWork(
        heads, kvHeads, headSize, batch, keys, decode, cache, keysSeen, images, chunk, plain);
  }

  GpuWork withImages() {
    return new GpuWork(
        heads, kvHeads, headSize, batch, keys, decode, cache, window, FOUR_IMAGES, chunk, plain);
  }

  GpuWork withoutImages() {
    return new GpuWork(
        heads, kvHeads, headSize, batch, keys, decode, cache, window, Vector.empty(), chunk, plain);
  }

  /** The published workloads. */
  static Seq<GpuWork> all() {
    Seq<GpuWork> works = Vector.empty();
    for (int[] shape : new int[][] {{32, 8, 128}, {32, 16, 256}, {32, 4, 512}}) {
      works =
          works
              .append(prefill(shape[0], shape[1], shape[2], 8, 1024))
              .append(prefill(shape[0], shape[1], shape[2], 1, 8192));
    }
    for (int[] shape : new int[][] {{32, 8, 128}, {32, 16, 256}}) {
      GpuWork plain = prefill(shape[0], shape[1], shape[2], 8, 2048);
      works =
          works
              .append(plain)
              .append(plain.withWindow(1024))
              .append(plain.withImages())
              .append(plain.withWindow(1024).withImages());
    }
    for (KvCacheDtype cache : new KvCacheDtype[] {KvCacheDtype.AUTO, KvCacheDtype.FP8_E4M3}) {
      works =
          works
              .append(decode(32, 8, 128, 64, 4096, cache))
              .append(decode(32, 16, 256, 32, 4096, cache))
              .append(decode(32, 4, 512, 32, 4096, cache));
    }
    return works
        .append(decode(32, 8, 128, 16, 4096, KvCacheDtype.AUTO))
        .append(decode(32, 8, 128, 1, 32_768, KvCacheDtype.AUTO));
  }

  /** Batches of which few sequences have images, for routing. */
  static Seq<GpuWork> mixed() {
    return Vector.of(
        chunks(32, 16, 256, 32, 2048),
        chunks(32, 16, 256, 32, 2048).withWindow(1024),
        chunks(32, 4, 512, 32, 2048));
  }

  /** A few of them. */
  static Seq<GpuWork> quick() {
    return Vector.of(prefill(32, 8, 128, 8, 1024), decode(32, 8, 128, 64, 4096, KvCacheDtype.AUTO));
  }

  boolean hasImages() {
    return !images.isEmpty();
  }

  /** Queries of a sequence. */
  int queries() {
    return decode ? 1 : chunk > 0 ? chunk : keys;
  }

  /** Images of a sequence. */
  Seq<Integer> images(int sequence) {
    return sequence < plain ? Vector.empty() : images;
  }

  /** Query tokens of the batch. */
  int tokens() {
    return batch * queries();
  }

  /** The layer. */
  Dense layer() {
    AttentionMask causal =
        window == 0 ? AttentionMask.CAUSAL : AttentionMask.CAUSAL.withWindow(window);
    return Dense.decoder(
            heads,
            kvHeads,
            headSize,
            DType.BF16,
            hasImages() ? causal.withImages(ImageMask.CLAMP_PAST) : causal)
        .withKvCacheDtype(cache);
  }

  /** First key that the query at a position sees. */
  int firstKey(int position) {
    return window == 0 ? 0 : Math.max(0, position - window + 1);
  }

  /** Last key that the query at a position sees. */
  int lastKey(int position) {
    for (int i = 0; i < images.size(); i += 2) {
      if (images.get(i) <= position && position <= images.get(i + 1)) {
        return images.get(i + 1);
      }
    }
    return position;
  }

  /** Visible pairs of query and key, of one query head. */
  long pairs() {
    long pairs = 0;
    long before = 0;
    for (int position = keys - queries(); position < keys; position++) {
      pairs += lastKey(position) - firstKey(position) + 1;
      before += position - firstKey(position) + 1;
    }
    return pairs * (batch - plain) + before * plain;
  }

  /** Bytes of keys and values. */
  long cacheBytes() {
    int width = cache.resolve(DType.BF16).elementType().get().bytes();
    return 2L * batch * keys * kvHeads * headSize * width;
  }

  /** What counts: TFLOP/s of a prefill, TB/s of a decode. */
  double speed(double milliseconds) {
    return decode
        ? cacheBytes() / milliseconds / 1e9
        : 4.0 * pairs() * heads * headSize / milliseconds / 1e9;
  }

  String unit() {
    return decode ? "TB/s" : "TFLOP/s";
  }

  /** The name, as the peers' script spells it too. */
  String title() {
    return (decode ? "decode" : hasImages() ? "image prefill" : "causal prefill")
        + " ("
        + heads
        + ","
        + kvHeads
        + ","
        + headSize
        + ") "
        + batch
        + "x"
        + keys
        + (chunk == 0 ? "" : " chunks of " + chunk + ", images in " + (batch - plain))
        + (window == 0 ? "" : " window " + window)
        + (cache == KvCacheDtype.AUTO ? "" : " e4m3");
  }
}

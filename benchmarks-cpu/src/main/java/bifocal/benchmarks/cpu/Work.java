package bifocal.benchmarks.cpu;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * A batch of attention: 8 query heads over 2 KV heads.
 *
 * @param name unique among works
 * @param dtype of queries, keys, values and output
 * @param cached type of the cache
 * @param headSize of keys and values
 * @param blockSize tokens of a block of the cache
 * @param mask of the layer
 * @param measure what its rate counts
 */
record Work(
    String name,
    DType dtype,
    KvCacheDtype cached,
    int headSize,
    int blockSize,
    AttentionMask mask,
    Measure measure,
    Seq<Request> requests) {
  static final int HEADS = 8;
  static final int KV_HEADS = 2;
  static final int GROUP = HEADS / KV_HEADS;

  /** What a rate counts. */
  enum Measure {
    /** Useful arithmetic: 4 · head size for each head and each visible pair of query and key. */
    GFLOPS("GFLOP/s"),
    /** Bytes of keys and values in the cache. */
    GBYTES("GB/s");

    private final String unit;

    Measure(String unit) {
      this.unit = unit;
    }

    String unit() {
      return unit;
    }
  }

  /**
   * One sequence.
   *
   * @param images first and last position of each image
   */
  record Request(int queryLen, int seqLen, int... images) {
    static Request prompt(int length) {
      return new Request(length, length);
    }

    static Request decode(int context) {
      return new Request(1, context);
    }
  }

  static Work prompts(String name, DType dtype, int headSize, Request... requests) {
    return new Work(
        name,
        dtype,
        KvCacheDtype.AUTO,
        headSize,
        32,
        AttentionMask.CAUSAL,
        Measure.GFLOPS,
        Vector.of(requests));
  }

  static Work decodes(String name, DType dtype, int sequences, int context) {
    return new Work(
        name,
        dtype,
        KvCacheDtype.AUTO,
        128,
        32,
        AttentionMask.CAUSAL,
        Measure.GBYTES,
        Vector.fill(sequences, () -> Request.decode(context)));
  }

  Work withBlockSize(int other) {
    return new Work(name, dtype, cached, headSize, other, mask, measure, requests);
  }

  Work withCache(KvCacheDtype other) {
    return new Work(name, dtype, other, headSize, blockSize, mask, measure, requests);
  }

  Work withMask(AttentionMask other) {
    return new Work(name, dtype, cached, headSize, blockSize, other, measure, requests);
  }

  /** The type as reports name it: that of the cache beside that of the layer where they differ. */
  String typeName() {
    return cached == KvCacheDtype.AUTO ? dtype.label() : dtype.label() + "/" + cached.label();
  }

  int queryTokens() {
    return requests.map(Request::queryLen).sum().intValue();
  }

  int longest() {
    return requests.map(Request::seqLen).max().getOrElse(1);
  }

  int cachedTokens() {
    return requests.map(Request::seqLen).sum().intValue();
  }

  /** What one run does, in the measure's unit times 10^9. */
  double amount() {
    return switch (measure) {
      case GFLOPS -> 4.0 * headSize * HEADS * visiblePairs();
      case GBYTES ->
          (double) cachedTokens()
              * KV_HEADS
              * 2
              * headSize
              * cached.elementType().getOrElse(dtype).bytes();
    };
  }

  /** Pairs of a query and a key that it sees. */
  private double visiblePairs() {
    double pairs = 0;
    for (Request request : requests) {
      for (int q = request.seqLen() - request.queryLen(); q < request.seqLen(); q++) {
        int first = mask.leftWindow() < 0 ? 0 : Math.max(0, q - mask.leftWindow());
        int last = q;
        for (int i = 0; mask.seesImages() && i < request.images().length; i += 2) {
          if (request.images()[i] <= q && q <= request.images()[i + 1]) {
            first = Math.min(first, request.images()[i]);
            last = request.images()[i + 1];
          }
        }
        pairs += last - first + 1;
      }
    }
    return pairs;
  }

  boolean decodesOnly() {
    return requests.forAll(request -> request.queryLen() == 1);
  }

  boolean uniform() {
    return requests.forAll(request -> request.seqLen() == requests.head().seqLen());
  }
}

package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.Work.Request;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** What is measured. */
final class Works {
  static final String PREFILL = "prefill 2048, head size 128";
  static final String PREFILL_WIDE = "prefill 2048, head size 256";
  static final String DECODE = "decode 64 x 16384, block 32";
  static final String DECODE_64 = "decode 64 x 16384, block 64";
  static final String DECODE_SMALL = "decode 16 x 4096";
  static final String DECODE_ONE = "decode 1 x 65536";
  static final String MIXED = "mixed: 14 decodes, 2 chunks of 512";
  static final String CAUSAL_LONG = "prefill 16384";
  static final String WINDOW = "window 1024 in 16384";
  static final String LOWERED = "4 images of 280 in 2048, lowered";
  private static final int GIB_OF_BF16 = 1 << 20;

  private Works() {}

  /**
   * One work, on whom and how many threads.
   *
   * @param others whether the Java kernels and peers compute it as well
   */
  record Planned(Work work, Seq<Integer> threads, boolean others) {}

  static Seq<Planned> quick() {
    return Vector.of(
        new Planned(prefill(DType.BF16, 128), Vector.of(1), true),
        new Planned(Work.decodes(DECODE_SMALL, DType.BF16, 16, 4096), Vector.of(1), true));
  }

  static Seq<Planned> all() {
    return Vector.of(
            compared(prefill(DType.BF16, 128)),
            compared(prefill(DType.BF16, 256)),
            compared(prefill(DType.FP32, 128)),
            compared(prefill(DType.FP32, 256)),
            compared(Work.decodes(DECODE, DType.BF16, 64, 16384)),
            compared(Work.decodes(DECODE_64, DType.BF16, 64, 16384).withBlockSize(64)),
            alone(Work.decodes(DECODE, DType.BF16, 64, 16384).withCache(KvCacheDtype.FP8_E4M3)),
            alone(Work.decodes(DECODE, DType.BF16, 64, 16384).withCache(KvCacheDtype.FP8_E5M2)),
            compared(Work.decodes(DECODE_SMALL, DType.BF16, 16, 4096)),
            compared(Work.decodes(DECODE_SMALL, DType.FP32, 16, 4096)),
            new Planned(Work.decodes(DECODE_ONE, DType.BF16, 1, 65536), Vector.of(2), true),
            compared(mixed(DType.BF16)),
            compared(mixed(DType.FP32)),
            alone(long16k()),
            alone(long16k(WINDOW).withMask(AttentionMask.CAUSAL.withWindow(1024))),
            alone(images()))
        .appendAll(growth());
  }

  private static Planned compared(Work work) {
    return new Planned(work, Vector.of(1, 2), true);
  }

  private static Planned alone(Work work) {
    return new Planned(work, Vector.of(1, 2), false);
  }

  static Work prefill(DType dtype, int headSize) {
    return Work.prompts(
        headSize == 128 ? PREFILL : PREFILL_WIDE, dtype, headSize, Request.prompt(2048));
  }

  private static Work long16k() {
    return long16k(CAUSAL_LONG);
  }

  private static Work long16k(String name) {
    return Work.prompts(name, DType.BF16, 128, Request.prompt(16384));
  }

  /** 14 decodes whose contexts run from 512 to 4096, and two chunks, one behind 1024 tokens. */
  static Work mixed(DType dtype) {
    Request[] requests = new Request[16];
    for (int i = 0; i < 14; i++) {
      requests[i] = Request.decode(512 + i * (4096 - 512) / 13);
    }
    requests[14] = Request.prompt(512);
    requests[15] = new Request(512, 1536);
    return Work.prompts(MIXED, dtype, 128, requests);
  }

  static Work images() {
    return Work.prompts(
            LOWERED,
            DType.BF16,
            128,
            new Request(2048, 2048, 186, 465, 652, 931, 1118, 1397, 1584, 1863))
        .withMask(AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE));
  }

  /** The same bytes of cache in ever fewer, ever longer sequences; chunks behind ever more keys. */
  private static Seq<Planned> growth() {
    Seq<Integer> lengths = Vector.of(1024, 4096, 16384, 65536);
    return lengths
        .map(n -> new Planned(decodeGrowth(n), Vector.of(1), false))
        .appendAll(lengths.map(n -> new Planned(prefillGrowth(n), Vector.of(1), false)));
  }

  static Work decodeGrowth(int context) {
    return Work.decodes("decode growth " + context, DType.BF16, GIB_OF_BF16 / context, context);
  }

  static Work prefillGrowth(int length) {
    return Work.prompts("prefill growth " + length, DType.BF16, 128, new Request(1024, length));
  }
}

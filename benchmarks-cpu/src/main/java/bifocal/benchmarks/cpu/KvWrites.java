package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.Interleaved.Entrant;
import bifocal.benchmarks.cpu.Work.Request;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.KvInput;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.tensor.DType;
import io.vavr.Tuple;
import io.vavr.Tuple2;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.MemorySegment;

/** Measures what storing keys and values costs, beside copying their bytes. */
final class KvWrites {
  private static final int ROUNDS = 15;
  private static final long PATIENCE_NANOS = 1_000_000_000L;
  private static final String WRITE = "write";
  private static final String COPY = "copy";
  private static final Seq<Tuple2<DType, KvCacheDtype>> TYPES =
      Vector.of(
          Tuple.of(DType.BF16, KvCacheDtype.AUTO),
          Tuple.of(DType.FP32, KvCacheDtype.AUTO),
          Tuple.of(DType.FP16, KvCacheDtype.AUTO),
          Tuple.of(DType.BF16, KvCacheDtype.FP8_E4M3),
          Tuple.of(DType.BF16, KvCacheDtype.FP8_E5M2),
          Tuple.of(DType.BF16, KvCacheDtype.INT8_PER_TOKEN_HEAD),
          Tuple.of(DType.BF16, KvCacheDtype.FP8_PER_TOKEN_HEAD));

  private KvWrites() {}

  static Seq<WriteRow> measure(Contenders contenders) {
    return TYPES.map(
        types -> {
          Work work =
              Work.prompts(WriteRow.NAME, types._1, 128, Request.prompt(Scene.PERIOD))
                  .withCache(types._2);
          try (Scene scene = contenders.scene(work)) {
            return row(scene, contenders.writer(scene));
          }
        });
  }

  private static WriteRow row(Scene scene, AttentionImpl<?> impl) {
    KvInput.Dense tokens = scene.keyValues(Scene.PERIOD);
    SlotMapping slots = scene.firstSlots(Scene.PERIOD);
    long bytes = tokens.k().data().byteSize();
    MemorySegment copy = scene.arena().allocate(2 * bytes, 64);
    try (impl) {
      Map<String, Double> rates =
          new Interleaved(1, ROUNDS, PATIENCE_NANOS)
              .medians(
                  Vector.of(
                      new Entrant(
                          WRITE,
                          1,
                          () -> impl.writeKv(scene.launch(), tokens, scene.cache(), slots)),
                      new Entrant(
                          COPY,
                          1,
                          () -> {
                            MemorySegment.copy(tokens.k().data(), 0, copy, 0, bytes);
                            MemorySegment.copy(tokens.v().data(), 0, copy, bytes, bytes);
                          })));
      double write = 1e-3 / rates.get(WRITE).get();
      double plain = 1e-3 / rates.get(COPY).get();
      return new WriteRow(
          scene.work().name(), scene.work().typeName(), write, plain, write / plain);
    }
  }
}

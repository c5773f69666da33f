package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.Interleaved.Entrant;
import bifocal.benchmarks.cpu.Work.Request;
import bifocal.core.backend.BackendName;
import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * Times of {@code FLEX_ATTENTION} and {@code CPU_ATTN} one beside the other, over one cache, on as
 * many threads as the backends use. Images are computed as they are by the first, and as causal and
 * non-causal runs by the second.
 */
final class CpuCalibration {
  private static final int ROUNDS = 5;
  private static final long PATIENCE_NANOS = 1_000_000_000L;
  private static final int DECODES = 4;
  private static final int BLOCK_SIZE = 64;

  /** A class of requests, and a batch of it. */
  record Measured(Phase phase, Work work) {
    Request request() {
      return work.requests().head();
    }

    /** What every child does: query heads times causal pairs. */
    double headPairs() {
      double queries = request().queryLen();
      double pairs = queries * request().seqLen() - queries * (queries - 1) / 2;
      return pairs * work.requests().size() * Work.HEADS;
    }
  }

  private final Contenders contenders = new Contenders(Option.none());
  private final int threads;

  /** Times on so many threads. */
  CpuCalibration(int threads) {
    this.threads = threads;
  }

  /** What is measured; a quick calibration takes the two head sizes of the model replays serve. */
  static Seq<Measured> plan(boolean quick) {
    return quick
        ? Vector.of(256, 512).flatMap(size -> shapes(DType.BF16, size, true))
        : Vector.of(DType.BF16, DType.FP32)
            .flatMap(
                dtype -> Vector.of(64, 128, 256, 512).flatMap(size -> shapes(dtype, size, false)));
  }

  private static Seq<Measured> shapes(DType dtype, int headSize, boolean quick) {
    Seq<Measured> few =
        Vector.of(
            measured(Phase.DECODE, dtype, headSize, 1, 1024),
            measured(Phase.PREFILL, dtype, headSize, 512, 512),
            measured(Phase.PREFILL, dtype, headSize, 512, 2048),
            measured(Phase.IMAGE, dtype, headSize, 512, 512));
    return quick
        ? few
        : few.append(measured(Phase.DECODE, dtype, headSize, 1, 8192))
            .append(measured(Phase.PREFILL, dtype, headSize, 64, 1024))
            .append(measured(Phase.PREFILL, dtype, headSize, 2048, 2048))
            .append(measured(Phase.IMAGE, dtype, headSize, 2048, 2048));
  }

  private static Measured measured(
      Phase phase, DType dtype, int headSize, int queryLen, int seqLen) {
    Request request =
        phase == Phase.IMAGE
            ? new Request(queryLen, seqLen, 100, 355)
            : new Request(queryLen, seqLen);
    Request[] requests =
        Vector.fill(phase == Phase.DECODE ? DECODES : 1, () -> request).toJavaArray(Request[]::new);
    Work work =
        Work.prompts(
                phase + " " + queryLen + " of " + seqLen + ", head size " + headSize,
                dtype,
                headSize,
                requests)
            .withBlockSize(BLOCK_SIZE);
    return new Measured(
        phase,
        phase == Phase.IMAGE
            ? work.withMask(AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE))
            : work);
  }

  /** Measures what is planned and wanted. */
  Seq<ChildTime> run(Seq<Measured> plan, BenchmarkRequest request) {
    return plan.filter(measured -> request.wants(measured.work().name()))
        .flatMap(
            measured -> {
              request.progress().accept(measured.work().name() + ", " + measured.work().typeName());
              return times(measured);
            });
  }

  private Seq<ChildTime> times(Measured measured) {
    try (Scene scene = contenders.scene(measured.work())) {
      Seq<Contender> children = Room.of(contenders.children(scene, threads));
      try {
        Agreement.require(measured.work(), children);
        Map<String, Double> rates =
            new Interleaved(threads, ROUNDS, PATIENCE_NANOS)
                .medians(
                    children.map(
                        child -> new Entrant(child.name(), measured.headPairs(), child::run)));
        return rates.toVector().map(rate -> time(measured, rate._1(), rate._2()));
      } finally {
        children.forEach(Contender::close);
      }
    }
  }

  /** A rate is in pairs per nanosecond. */
  private static ChildTime time(Measured measured, String child, double rate) {
    return new ChildTime(
        BackendName.of(child),
        measured.work().dtype(),
        measured.work().headSize(),
        measured.phase(),
        measured.request().queryLen(),
        measured.request().seqLen(),
        1 / rate);
  }
}

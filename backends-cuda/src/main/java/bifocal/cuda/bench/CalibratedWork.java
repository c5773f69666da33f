package bifocal.cuda.bench;

import bifocal.core.backend.BackendName;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** A workload that stands for a class of requests. */
record CalibratedWork(GpuWork work) {
  private static final int[][] SHAPES = {{32, 16, 256}, {32, 4, 512}, {32, 8, 128}};
  private static final int QUICK_SHAPES = 2;

  /** What is measured; a quick calibration takes the two layers of the model that replays serve. */
  static Seq<CalibratedWork> plan(boolean quick) {
    return Vector.of(SHAPES)
        .take(quick ? QUICK_SHAPES : SHAPES.length)
        .flatMap(shape -> works(shape[0], shape[1], shape[2], quick))
        .map(CalibratedWork::new);
  }

  private static Seq<GpuWork> works(int heads, int kvHeads, int headSize, boolean quick) {
    Seq<GpuWork> few =
        Vector.of(
            GpuWork.decode(heads, kvHeads, headSize, 32, 4096, KvCacheDtype.AUTO),
            GpuWork.prefill(heads, kvHeads, headSize, 8, 1024),
            GpuWork.prefill(heads, kvHeads, headSize, 8, 2048).withImages());
    return quick
        ? few
        : few.append(GpuWork.decode(heads, kvHeads, headSize, 8, 1024, KvCacheDtype.AUTO))
            .append(GpuWork.prefill(heads, kvHeads, headSize, 1, 8192));
  }

  /** What its requests are. */
  Phase phase() {
    return work.decode() ? Phase.DECODE : work.hasImages() ? Phase.IMAGE : Phase.PREFILL;
  }

  /** The time of a child that took so long for the whole batch. */
  ChildTime time(BackendName child, double milliseconds) {
    double pairs = (double) work.withoutImages().pairs() * work.heads();
    return new ChildTime(
        child,
        DType.BF16,
        work.headSize(),
        phase(),
        work.queries(),
        work.keys(),
        milliseconds * 1e6 / pairs);
  }
}

package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.ffi.Peaks;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/** What is wanted of the rows of a run, as far as they were measured. */
final class Goals {
  private static final String BF16 = "bf16";
  private static final String FP32 = "fp32";

  private final Seq<Row> rows;
  private final List<Goal> goals = new ArrayList<>();

  private Goals(Seq<Row> rows) {
    this.rows = rows;
  }

  static Seq<Goal> of(Seq<Row> rows, Seq<WriteRow> writes, Seq<CompositeRow> composite) {
    Goals goals = new Goals(rows);
    for (String prefill : new String[] {Works.PREFILL, Works.PREFILL_WIDE}) {
      goals.beside(prefill, BF16, 1, 5.5, 80, 2.1);
      goals.dotProducts(prefill, 1, 80);
      goals.beside(prefill, BF16, 2, 5.0, 72, 2.1);
      goals.dotProducts(prefill, 2, 72);
      goals.beside(prefill, FP32, 1, 2.8, 85, 2.4);
      goals.beside(prefill, FP32, 2, 2.6, 78, 2.4);
    }
    for (String decode : new String[] {Works.DECODE, Works.DECODE_64}) {
      goals.beside(decode, BF16, 1, 5.0, 85, 2.5);
      goals.beside(decode, BF16, 2, 5.0, 85, 2.5);
    }
    goals.floatEight();
    goals.peak(Works.DECODE_ONE, BF16, 2, 80);
    goals.ratio(Works.MIXED, BF16, 1, 6);
    goals.ratio(Works.MIXED, BF16, 2, 6);
    goals.shares();
    goals.threads();
    goals.growth();
    goals.writes(writes);
    goals.composite(composite);
    return Vector.ofAll(goals.goals);
  }

  private Option<Row> row(String work, String dtype, int threads) {
    return rows.find(
        row -> row.work().equals(work) && row.dtype().equals(dtype) && row.threads() == threads);
  }

  private Option<Double> ours(String work, String dtype, int threads) {
    return row(work, dtype, threads).map(Row::ours);
  }

  private void beside(
      String work, String dtype, int threads, double ratio, double percent, double vector) {
    ratio(work, dtype, threads, ratio);
    peak(work, dtype, threads, percent);
    want(
        work,
        dtype,
        threads,
        "Vector API over libtorch",
        vector,
        row -> row.vectorApi().flatMap(v -> row.peers().get("libtorch").map(t -> v / t)));
  }

  private void ratio(String work, String dtype, int threads, double wanted) {
    want(work, dtype, threads, "over libtorch", wanted, Row::ratioLibtorch);
  }

  private void peak(String work, String dtype, int threads, double wanted) {
    want(work, dtype, threads, "percent of the peak", wanted, Row::percentPeak);
  }

  /** Beside the highest peak, which on matrix tiles is another. */
  private void dotProducts(String work, int threads, double wanted) {
    String dot = Peaks.Instruction.DOT.label();
    want(
        work,
        BF16,
        threads,
        "percent of the peak of " + dot,
        wanted,
        row -> row.peaks().get(dot).map(peak -> 100 * row.ours() / peak));
  }

  private void want(
      String work,
      String dtype,
      int threads,
      String what,
      double wanted,
      Function<Row, Option<Double>> reached) {
    row(work, dtype, threads)
        .flatMap(reached)
        .forEach(
            value ->
                goals.add(
                    Goal.atLeast(
                        work + ", " + dtype + ", " + threads + "T: " + what, wanted, value)));
  }

  /** Half the bytes, so tokens per second are twice the ratio of the bytes per second. */
  private void floatEight() {
    for (String type : new String[] {"bf16/fp8_e4m3", "bf16/fp8_e5m2"}) {
      for (int threads = 1; threads <= 2; threads++) {
        int count = threads;
        ours(Works.DECODE, type, count)
            .forEach(
                narrow ->
                    ours(Works.DECODE, BF16, count)
                        .forEach(
                            wide ->
                                goals.add(
                                    Goal.atLeast(
                                        "decode, " + type + ", " + count + "T: tokens over bf16's",
                                        1.4,
                                        2 * narrow / wide))));
      }
    }
  }

  /** A mask that leaves a share of the keys should leave the same share of the time. */
  private void shares() {
    for (int threads = 1; threads <= 2; threads++) {
      over(Works.CAUSAL_LONG, Works.WINDOW, threads);
      over(Works.PREFILL, Works.LOWERED, threads);
    }
  }

  private void over(String whole, String masked, int threads) {
    ours(whole, BF16, threads)
        .forEach(
            all ->
                ours(masked, BF16, threads)
                    .forEach(
                        part ->
                            goals.add(
                                Goal.atMost(
                                    masked
                                        + ", "
                                        + threads
                                        + "T: time over the keys' share of "
                                        + whole,
                                    1.15,
                                    all / part))));
  }

  private void threads() {
    for (Row one : rows.filter(row -> row.threads() == 1)) {
      ours(one.work(), one.dtype(), 2)
          .forEach(
              two ->
                  goals.add(
                      Goal.atLeast(
                          one.work() + ", " + one.dtype() + ": two threads over one",
                          1.85,
                          two / one.ours())));
    }
  }

  /** Rates that do not change are times that grow as they should. */
  private void growth() {
    for (String kind : new String[] {"decode growth", "prefill growth"}) {
      Seq<Row> grown = rows.filter(row -> row.work().startsWith(kind));
      if (grown.size() > 1) {
        double first = grown.head().ours();
        for (Row row : grown.tail()) {
          goals.add(
              Goal.atMost(
                  row.work() + ": time over what 1024 would make expect", 1.1, first / row.ours()));
        }
      }
    }
  }

  private void writes(Seq<WriteRow> writes) {
    for (WriteRow write : writes) {
      goals.add(
          Goal.atMost(
              write.work() + ", " + write.dtype() + ": over a copy of the bytes",
              2,
              write.ratio()));
    }
    writes
        .find(write -> write.dtype().equals(BF16))
        .forEach(
            write ->
                ours(Works.PREFILL, BF16, 1)
                    .forEach(
                        rate ->
                            goals.add(
                                Goal.atMost(
                                    write.work() + ", bf16: percent of the prefill's time",
                                    3,
                                    100 * write.microseconds() / prefillMicros(rate)))));
  }

  /** The step that suffers most from being routed, and the routes among each other. */
  private void composite(Seq<CompositeRow> all) {
    for (int threads : all.map(CompositeRow::threads).distinct()) {
      Seq<CompositeRow> steps = all.filter(row -> row.threads() == threads);
      String name = CompositeRow.NAME + ", " + threads + "T: ";
      steps
          .flatMap(CompositeRow::overBestChild)
          .min()
          .forEach(
              worst ->
                  goals.add(Goal.atLeast(name + "slowest step over the best child", 0.98, worst)));
      CompositeRow.wholeOverSplit(steps)
          .forEach(ratio -> overWhole(name + CompositeRow.SPLIT, ratio));
      CompositeRow.overLowered(steps, CompositeRow.WHOLE_BATCH)
          .forEach(ratio -> overWhole(name + CompositeRow.LOWERED, ratio));
    }
  }

  private void overWhole(String route, double reached) {
    goals.add(Goal.atLeast(route + " over whole batches", 1, reached));
  }

  private static double prefillMicros(double gigaflops) {
    return Works.prefill(bifocal.core.tensor.DType.BF16, 128).amount() / gigaflops / 1e3;
  }
}

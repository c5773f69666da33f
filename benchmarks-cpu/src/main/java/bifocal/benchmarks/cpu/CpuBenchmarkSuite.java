package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.Interleaved.Entrant;
import bifocal.benchmarks.cpu.Works.Planned;
import bifocal.benchmarks.cpu.ffi.Peaks;
import bifocal.core.bench.BenchmarkReport;
import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.bench.BenchmarkSuite;
import bifocal.core.bench.ChildTime;
import bifocal.cpu.thread.ThreadBudget;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/** The {@code cpu} suite. */
public final class CpuBenchmarkSuite implements BenchmarkSuite {
  private static final int ROUNDS = 7;
  private static final long PATIENCE_NANOS = 2_500_000_000L;

  /** For the service loader. */
  public CpuBenchmarkSuite() {}

  @Override
  public String name() {
    return "cpu";
  }

  @Override
  public BenchmarkReport run(BenchmarkRequest request) {
    Seq<Planned> plan =
        (request.quick() ? Works.quick() : Works.all()).filter(p -> request.wants(p.work().name()));
    boolean withWrites = !request.quick() && request.wants(WriteRow.NAME);
    boolean withComposite = !request.quick() && request.wants(CompositeRow.NAME);
    if (plan.isEmpty() && !withWrites && !withComposite) {
      throw request.noSuchWork();
    }
    Host before = Host.now();
    Contenders contenders = new Contenders(request.peers());
    Seq<Row> rows = Vector.empty();
    Seq<WriteRow> writes = Vector.empty();
    Seq<CompositeRow> composite = Vector.empty();
    try (MachinePeaks peaks = new MachinePeaks(Peaks.load())) {
      for (Planned planned : plan) {
        rows = rows.appendAll(measure(planned, contenders, peaks, request));
      }
    }
    if (withWrites) {
      request.progress().accept(WriteRow.NAME);
      writes = KvWrites.measure(contenders);
    }
    if (withComposite) {
      composite = CompositeSteps.measure(contenders, request);
    }
    CpuResults results =
        new CpuResults(
            rows,
            writes,
            composite,
            Goals.of(rows, writes, composite),
            before,
            Host.now(),
            contenders.versions());
    return new BenchmarkReport(
        ResultsText.of(results),
        results,
        Option.some(
            new BenchmarkReport.Page(ResultsPage.of(results), ResultsPlot.of(results.rows()))));
  }

  @Override
  public Seq<ChildTime> calibrate(BenchmarkRequest request) {
    return new CpuCalibration(ThreadBudget.ofThisProcess().threads())
        .run(CpuCalibration.plan(request.quick()), request);
  }

  private static Seq<Row> measure(
      Planned planned, Contenders contenders, MachinePeaks peaks, BenchmarkRequest request) {
    Seq<Row> rows = Vector.empty();
    try (Scene scene = contenders.scene(planned.work())) {
      for (int threads : planned.threads().filter(n -> n <= Host.available())) {
        request
            .progress()
            .accept(
                planned.work().name() + ", " + planned.work().typeName() + ", " + threads + "T");
        rows = rows.append(row(planned, scene, threads, contenders, peaks));
      }
    }
    return rows;
  }

  private static Row row(
      Planned planned, Scene scene, int threads, Contenders contenders, MachinePeaks peaks) {
    Work work = planned.work();
    boolean compared = planned.others() || threads == planned.threads().head();
    Seq<Contender> all = contenders.of(scene, threads, compared, planned.others());
    try {
      Option<Double> error =
          all.size() > 1 ? Option.some(Agreement.require(work, all)) : Option.none();
      Seq<Contender> timed = planned.others() ? all : all.take(1);
      Seq<Entrant> machine = peaks.of(work, threads);
      Map<String, Double> medians =
          new Interleaved(threads, ROUNDS, PATIENCE_NANOS)
              .medians(
                  timed.map(c -> new Entrant(c.name(), work.amount(), c::run)).appendAll(machine));
      return row(work, threads, contenders.kernels(), medians, machine.map(Entrant::name), error);
    } finally {
      all.forEach(Contender::close);
    }
  }

  private static Row row(
      Work work,
      int threads,
      String kernels,
      Map<String, Double> medians,
      Seq<String> machine,
      Option<Double> error) {
    double ours = medians.get(Contenders.OURS).get();
    Map<String, Double> peaks = medians.filterKeys(machine::contains);
    Map<String, Double> peers =
        medians.filterKeys(
            name ->
                !machine.contains(name)
                    && !name.equals(Contenders.OURS)
                    && !name.equals(Contenders.VECTOR_API));
    return new Row(
        work.name(),
        work.typeName(),
        threads,
        ours,
        medians.get(Contenders.VECTOR_API),
        peers,
        peers.get("libtorch").map(rate -> ours / rate),
        peaks.values().max().map(peak -> 100 * ours / peak),
        work.measure().unit(),
        kernels,
        peaks,
        error);
  }
}

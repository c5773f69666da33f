package bifocal.cuda.bench;

import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.KernelSettings.FlashAttentionVersion;
import bifocal.core.bench.BenchmarkReport;
import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.bench.BenchmarkSuite;
import bifocal.core.bench.ChildTime;
import bifocal.core.cache.KvCacheDtype;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.flashattention.FlashAttentionBackend;
import bifocal.cuda.flashattention.ForwardHost;
import bifocal.cuda.flashinfer.DecodeKernels;
import bifocal.cuda.flashinfer.FlashInferBackend;
import bifocal.cuda.flashinfer.FlashInferHost;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.triton.TritonAttnBackend;
import bifocal.cuda.triton.TritonCausalBackend;
import bifocal.cuda.triton.TritonDevice;
import bifocal.cuda.triton.TritonHost;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import bifocal.routing.MeasuredRouting;
import io.vavr.collection.HashSet;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.nio.file.Path;
import java.util.function.Function;

/**
 * Attention on this host's GPU: the backends as an engine runs them, over paged caches, beside
 * PyTorch's kernels over contiguous keys and values.
 */
public final class CudaBenchmarkSuite implements BenchmarkSuite {
  /** System property: the sources' commit, for the result file. */
  static final String COMMIT = "bifocal.bench.commit";

  private final TritonHost host;
  private final FlashInferHost modules;
  private final ForwardHost forwards;

  /** Over the device and kernel packs of this host. */
  public CudaBenchmarkSuite() {
    this(TritonHost.ofThisJvm());
  }

  /** Over the kernels of a host. */
  public CudaBenchmarkSuite(TritonHost host) {
    this.host = host;
    this.modules = FlashInferHost.beside(host);
    this.forwards = ForwardHost.beside(host);
  }

  @Override
  public String name() {
    return "gpu";
  }

  @Override
  public BenchmarkReport run(BenchmarkRequest request) {
    return opened(request, request.peers(), Run::all);
  }

  @Override
  public Seq<ChildTime> calibrate(BenchmarkRequest request) {
    return opened(request, Option.none(), Run::times);
  }

  private <T> T opened(BenchmarkRequest request, Option<Path> others, Function<Run, T> measure) {
    TritonDevice device =
        host.device()
            .fold(
                why -> {
                  throw why;
                },
                found -> found);
    GpuPeers peers = GpuPeers.measure(others, request.quick(), request.progress());
    CudaContext context = device.context();
    try (CudaMemory memory = CudaMemory.unlimited(context);
        CudaStream stream = CudaStream.create(context);
        RandomNumbers numbers = new RandomNumbers(context)) {
      CudaLaunchContext launch = new CudaLaunchContext(stream, AttentionObserver.NONE);
      return measure.apply(new Run(request, peers, context, memory, launch, numbers));
    }
  }

  private static AttentionBackend<? extends AttentionMetadata> pair(
      TritonHost host, MMPrefixAttentionRouting routing) {
    return pair(host, new TritonCausalBackend(host), routing);
  }

  /** A pair whose general child is {@code TRITON_ATTN}. */
  private static <M extends AttentionMetadata> AttentionBackend<? extends AttentionMetadata> pair(
      TritonHost host, AttentionBackend<M> fast, MMPrefixAttentionRouting routing) {
    return CompositeBackends.createCompositeBackendOrThrow(
        new TritonAttnBackend(host), fast, routing);
  }

  /** One run. */
  private final class Run {
    private final BenchmarkRequest request;
    private final GpuPeers peers;
    private final CudaContext context;
    private final CudaMemory memory;
    private final CudaLaunchContext launch;
    private final RandomNumbers numbers;

    Run(
        BenchmarkRequest request,
        GpuPeers peers,
        CudaContext context,
        CudaMemory memory,
        CudaLaunchContext launch,
        RandomNumbers numbers) {
      this.request = request;
      this.peers = peers;
      this.context = context;
      this.memory = memory;
      this.launch = launch;
      this.numbers = numbers;
    }

    BenchmarkReport all() {
      Seq<HostCosts> costs = hostCosts();
      Seq<LoweredCost> lowered = lowered();
      Seq<Turns> turns = turns();
      Seq<GpuRow> rows = rows();
      if (costs.isEmpty() && lowered.isEmpty() && turns.isEmpty() && rows.isEmpty()) {
        throw request.noSuchWork();
      }
      LinkedHashMap<String, Object> json =
          LinkedHashMap.<String, Object>of("device", context.device().name())
              .put("driver", context.driver().version())
              .put("versions", peers.versions().toJavaMap())
              .put("peers_note", peers.note())
              .put("commit", System.getProperty(COMMIT, "unknown"))
              .put("command", "bifocal bench --suite gpu" + (request.quick() ? " --quick" : ""))
              .put("rows", rows.map(GpuRow::json).toJavaList())
              .put("best", best(rows).map(GpuRow::best).toJavaList())
              .put("lowered", lowered.map(LoweredCost::json).toJavaList())
              .put("turns", turns.map(Turns::json).toJavaList())
              .put("host", costs.toJavaList());
      return new BenchmarkReport(text(rows, lowered, turns, costs), json.toJavaMap());
    }

    private String text(
        Seq<GpuRow> rows, Seq<LoweredCost> lowered, Seq<Turns> turns, Seq<HostCosts> costs) {
      return context.device()
          + "\n"
          + (peers.note().isEmpty() ? "" : "no peers: " + peers.note() + "\n")
          + rows.map(GpuRow::line)
              .appendAll(best(rows).map(GpuRow::bestLine))
              .appendAll(lowered.map(LoweredCost::line))
              .appendAll(turns.map(Turns::line))
              .mkString("\n")
          + "\n"
          + costs.mkString("\n")
          + "\n";
    }

    /** The children of the pairs, one by one, in classes of requests. */
    Seq<ChildTime> times() {
      return timed(
          timer ->
              CalibratedWork.plan(request.quick())
                  .filter(planned -> request.wants(planned.work().title()))
                  .flatMap(planned -> times(planned, timer)));
    }

    private Seq<ChildTime> times(CalibratedWork planned, GpuTimer timer) {
      boolean images = planned.work().hasImages();
      BackendName causal = TritonCausalBackend.NAME;
      Seq<Turns.Named<?>> ours =
          Vector.of(
              child(TritonAttnBackend.NAME, new TritonAttnBackend(host)),
              images ? child(causal, lowering()) : child(causal, new TritonCausalBackend(host)));
      return ours.appendAll(
              others(planned.work().withoutImages())
                  .map(
                      fast ->
                          images ? child(fast.name(), loweringTo(fast)) : child(fast.name(), fast)))
          .map(
              child -> {
                GpuRow row = row(child.backend(), child.name(), planned.work(), timer);
                return planned.time(BackendName.of(child.name()), row.milliseconds());
              });
    }

    private static <M extends AttentionMetadata> Turns.Named<?> child(
        BackendName name, AttentionBackend<M> backend) {
      return new Turns.Named<>(name.value(), backend);
    }

    private Seq<HostCosts> hostCosts() {
      if (!request.wants("host costs")) {
        return Vector.empty();
      }
      request.progress().accept("host costs");
      GpuWork usual = HostCosts.WORK;
      Seq<HostCosts> costs =
          Vector.of(
              costs(new TritonCausalBackend(host), usual),
              costs(new TritonAttnBackend(host), usual),
              costs(pair(host, new MMPrefixAttentionRouting()), usual));
      GpuWork wide = HostCosts.WIDE;
      Seq<HostCosts> withDecodes =
          serves(flashInfer(), usual) ? costs.append(costs(flashInfer(), usual)) : costs;
      return serves(flashInfer(), wide)
          ? withDecodes
              .append(costs(flashInfer(), wide))
              .append(costs(pair(host, flashInfer(), new MMPrefixAttentionRouting()), wide))
          : withDecodes;
    }

    private <M extends AttentionMetadata> HostCosts costs(
        AttentionBackend<M> backend, GpuWork work) {
      return HostCosts.measure(backend, work, launch, memory, numbers);
    }

    /** Images as runs beside the same batch without images, in turns. */
    private Seq<LoweredCost> lowered() {
      Seq<GpuWork> works =
          (request.quick() ? Vector.<GpuWork>empty() : GpuWork.all())
              .filter(GpuWork::hasImages)
              .filter(work -> request.wants(work.title()));
      return works.isEmpty()
          ? Vector.empty()
          : timed(timer -> works.flatMap(work -> lowered(work, timer)));
    }

    private Seq<LoweredCost> lowered(GpuWork work, GpuTimer timer) {
      Seq<LoweredCost> costs =
          Vector.of(lowered("", lowering(), new TritonCausalBackend(host), work, timer));
      return costs.appendAll(
          others(work.withoutImages())
              .map(fast -> lowered(" by " + fast.name(), loweringTo(fast), fast, work, timer)));
    }

    private <A extends AttentionMetadata, B extends AttentionMetadata> LoweredCost lowered(
        String by,
        AttentionBackend<A> pair,
        AttentionBackend<B> fast,
        GpuWork work,
        GpuTimer timer) {
      return LoweredCost.measure(
          by, pair, fast, work, launch, memory, numbers, timer, request.progress());
    }

    private AttentionBackend<? extends AttentionMetadata> lowering() {
      return pair(host, new MMPrefixAttentionRouting().withLowering(Lowering.BOTH_WINDOWS));
    }

    private <M extends AttentionMetadata> AttentionBackend<? extends AttentionMetadata> loweringTo(
        AttentionBackend<M> fast) {
      return pair(host, fast, new MMPrefixAttentionRouting().withLowering(Lowering.LEFT_WINDOW));
    }

    private FlashInferBackend flashInfer() {
      return new FlashInferBackend(modules);
    }

    /** Fast children of other makers that have kernels here for a work. */
    private Seq<AttentionBackend<?>> others(GpuWork work) {
      return Vector.<AttentionBackend<?>>of(flashInfer(), new FlashAttentionBackend(forwards))
          .filter(backend -> serves(backend, work));
    }

    /** Whether a backend has kernels here for a work: FlashAttention those of version 4. */
    private boolean serves(AttentionBackend<?> backend, GpuWork work) {
      Deployment wantsVersion4 =
          Deployment.PLAIN.withKernels(
              Deployment.PLAIN.kernels().withFlashAttention(new FlashAttentionVersion(4, true)));
      return backend
          .missingOnThisHost(
              new AttentionRequest(
                  work.layer(),
                  context.device().profile(HashSet.of("fa4")),
                  Option.none(),
                  wantsVersion4))
          .isEmpty();
    }

    /** Routes beside the whole batch on the general child, and a pair beside its fast child. */
    private Seq<Turns> turns() {
      Seq<GpuWork> works =
          (request.quick() ? Vector.<GpuWork>empty() : GpuWork.mixed())
              .filter(work -> request.wants(work.title()));
      return works.isEmpty()
          ? Vector.empty()
          : timed(
              timer -> {
                Seq<ChildTime> times =
                    CalibratedWork.plan(true).flatMap(planned -> times(planned, timer));
                return works.flatMap(work -> turns(work, times, timer));
              });
    }

    private Seq<Turns> turns(GpuWork work, Seq<ChildTime> times, GpuTimer timer) {
      MMPrefixAttentionRouting routing = new MMPrefixAttentionRouting();
      Turns.Named<?> whole = new Turns.Named<>("whole batch", pair(host, routing.wholeBatch()));
      Seq<Turns> turns =
          Vector.of(
              turn("split", pair(host, routing), whole, work, timer),
              turn("lowered", lowering(), whole, work, timer));
      return turns.appendAll(
          others(work.withoutImages()).flatMap(fast -> turns(fast, whole, times, work, timer)));
    }

    private Seq<Turns> turns(
        AttentionBackend<?> fast,
        Turns.Named<?> whole,
        Seq<ChildTime> times,
        GpuWork work,
        GpuTimer timer) {
      MMPrefixAttentionRouting routing = new MMPrefixAttentionRouting();
      String with = " to " + fast.name();
      GpuWork text = work.withoutImages();
      Turns.Named<?> alone = new Turns.Named<>(fast.name().value(), fast);
      return Vector.of(
          turn("split" + with, pair(host, fast, routing), whole, work, timer),
          turn("lowered" + with, loweringTo(fast), whole, work, timer),
          turn("measured, " + fast.name(), measuring(fast, times), whole, work, timer),
          turn("pair, text", pair(host, fast, routing), alone, text, timer));
    }

    /** A pair that lowers, or leaves to the general child what is faster there. */
    private <M extends AttentionMetadata> AttentionBackend<? extends AttentionMetadata> measuring(
        AttentionBackend<M> fast, Seq<ChildTime> times) {
      MMPrefixAttentionRouting lowers =
          new MMPrefixAttentionRouting().withLowering(Lowering.LEFT_WINDOW);
      return CompositeBackends.createCompositeBackendOrThrow(
          new TritonAttnBackend(host),
          fast,
          new MeasuredRouting(lowers, times, TritonAttnBackend.NAME, fast.name()));
    }

    private Turns turn(
        String name,
        AttentionBackend<?> backend,
        Turns.Named<?> than,
        GpuWork work,
        GpuTimer timer) {
      Turns turns =
          Turns.measure(
              new Turns.Named<>(name, backend), than, work, launch, memory, numbers, timer);
      request.progress().accept(turns.line());
      return turns;
    }

    private Seq<GpuRow> rows() {
      return timed(
          timer ->
              (request.quick() ? GpuWork.quick() : GpuWork.all())
                  .filter(work -> request.wants(work.title()))
                  .flatMap(work -> rows(work, timer)));
    }

    private <T> T timed(Function<GpuTimer, T> measure) {
      GpuWork large = GpuWork.decode(32, 8, 128, 16, 4096, KvCacheDtype.AUTO);
      try (GpuScene<?> other =
              new GpuScene<>(new TritonCausalBackend(host), large, launch, memory, numbers);
          GpuTimer timer = new GpuTimer(context, launch.queue(), other::forward)) {
        return measure.apply(timer);
      }
    }

    private Seq<GpuRow> rows(GpuWork work, GpuTimer timer) {
      return (work.hasImages() ? withImages(work) : plain(work))
          .map(named -> row(named.backend(), named.name(), work, timer));
    }

    private Seq<Turns.Named<?>> withImages(GpuWork work) {
      Seq<Turns.Named<?>> backends =
          Vector.of(
              new Turns.Named<>("pair, lowered", lowering()),
              new Turns.Named<>(TritonAttnBackend.NAME.value(), new TritonAttnBackend(host)));
      return backends.appendAll(
          others(work.withoutImages())
              .map(
                  fast ->
                      new Turns.Named<>(
                          TritonAttnBackend.NAME + "+" + fast.name() + ", lowered",
                          loweringTo(fast))));
    }

    private Seq<Turns.Named<?>> plain(GpuWork work) {
      Seq<Turns.Named<?>> backends =
          Vector.of(
              new Turns.Named<>(TritonCausalBackend.NAME.value(), new TritonCausalBackend(host)));
      Seq<Turns.Named<?>> all =
          backends.appendAll(
              others(work).map(fast -> new Turns.Named<>(fast.name().value(), fast)));
      return work.decode() && serves(flashInfer(), work)
          ? all.append(
              new Turns.Named<>(
                  FlashInferBackend.NAME + ", CUDA cores",
                  new FlashInferBackend(modules, DecodeKernels.CUDA_CORES)))
          : all;
    }

    /** Of each work the fastest row. */
    private static Seq<GpuRow> best(Seq<GpuRow> rows) {
      return rows.groupBy(row -> row.work().title())
          .values()
          .map(of -> of.minBy(GpuRow::milliseconds).get())
          .toVector()
          .sortBy(row -> rows.indexOf(row));
    }

    private <M extends AttentionMetadata> GpuRow row(
        AttentionBackend<M> backend, String name, GpuWork work, GpuTimer timer) {
      try (GpuScene<M> scene = new GpuScene<>(backend, work, launch, memory, numbers)) {
        double error = SceneCheck.run(scene);
        double milliseconds = timer.median(scene::forward);
        GpuRow row = new GpuRow(work, name, milliseconds, error, peers.of(work));
        request.progress().accept(row.line());
        return row;
      }
    }
  }
}

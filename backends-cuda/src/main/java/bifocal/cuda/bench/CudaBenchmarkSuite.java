package bifocal.cuda.bench;

import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.bench.BenchmarkReport;
import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.bench.BenchmarkSuite;
import bifocal.core.cache.KvCacheDtype;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaLaunchContext;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.triton.TritonAttnBackend;
import bifocal.cuda.triton.TritonCausalBackend;
import bifocal.cuda.triton.TritonDevice;
import bifocal.cuda.triton.TritonHost;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.function.Function;

/**
 * Attention on this host's GPU: the backends as an engine runs them, over paged caches, beside
 * PyTorch's kernels over contiguous keys and values.
 */
public final class CudaBenchmarkSuite implements BenchmarkSuite {
  /** System property: the sources' commit, for the result file. */
  static final String COMMIT = "bifocal.bench.commit";

  private final TritonHost host;

  /** Over the device and kernel packs of this host. */
  public CudaBenchmarkSuite() {
    this(TritonHost.ofThisJvm());
  }

  /** Over the kernels of a host. */
  public CudaBenchmarkSuite(TritonHost host) {
    this.host = host;
  }

  @Override
  public String name() {
    return "gpu";
  }

  @Override
  public BenchmarkReport run(BenchmarkRequest request) {
    TritonDevice device =
        host.device()
            .fold(
                why -> {
                  throw why;
                },
                found -> found);
    GpuPeers peers = GpuPeers.measure(request.peers(), request.quick(), request.progress());
    CudaContext context = device.context();
    try (CudaMemory memory = CudaMemory.unlimited(context);
        CudaStream stream = CudaStream.create(context);
        RandomNumbers numbers = new RandomNumbers(context)) {
      CudaLaunchContext launch = new CudaLaunchContext(stream, AttentionObserver.NONE);
      return new Run(request, peers, context, memory, launch, numbers).all();
    }
  }

  private static AttentionBackend<? extends AttentionMetadata> pair(
      TritonHost host, MMPrefixAttentionRouting routing) {
    return CompositeBackends.createCompositeBackendOrThrow(
        new TritonAttnBackend(host), new TritonCausalBackend(host), routing);
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
      Seq<GpuRow> rows = rows();
      LinkedHashMap<String, Object> json =
          LinkedHashMap.<String, Object>of("device", context.device().name())
              .put("driver", context.driver().version())
              .put("versions", peers.versions().toJavaMap())
              .put("peers_note", peers.note())
              .put("commit", System.getProperty(COMMIT, "unknown"))
              .put("command", "bifocal bench --suite gpu" + (request.quick() ? " --quick" : ""))
              .put("rows", rows.map(GpuRow::json).toJavaList())
              .put("lowered", lowered.map(LoweredCost::json).toJavaList())
              .put("host", costs.toJavaList());
      return new BenchmarkReport(text(rows, lowered, costs), json.toJavaMap());
    }

    private String text(Seq<GpuRow> rows, Seq<LoweredCost> lowered, Seq<HostCosts> costs) {
      return context.device()
          + "\n"
          + (peers.note().isEmpty() ? "" : "no peers: " + peers.note() + "\n")
          + rows.map(GpuRow::line).appendAll(lowered.map(LoweredCost::line)).mkString("\n")
          + "\n"
          + costs.mkString("\n")
          + "\n";
    }

    private Seq<HostCosts> hostCosts() {
      if (!request.wants("host costs")) {
        return Vector.empty();
      }
      request.progress().accept("host costs");
      return Vector.of(
          HostCosts.measure(new TritonCausalBackend(host), launch, memory, numbers),
          HostCosts.measure(new TritonAttnBackend(host), launch, memory, numbers),
          HostCosts.measure(pair(host, new MMPrefixAttentionRouting()), launch, memory, numbers));
    }

    /** Images as runs beside the same batch without images, in turns. */
    private Seq<LoweredCost> lowered() {
      Seq<GpuWork> works =
          (request.quick() ? Vector.<GpuWork>empty() : GpuWork.all())
              .filter(GpuWork::hasImages)
              .filter(work -> request.wants(work.title()));
      return works.isEmpty()
          ? Vector.empty()
          : timed(
              timer ->
                  works.map(
                      work ->
                          LoweredCost.measure(
                              lowering(),
                              new TritonCausalBackend(host),
                              work,
                              launch,
                              memory,
                              numbers,
                              timer,
                              request.progress())));
    }

    private AttentionBackend<? extends AttentionMetadata> lowering() {
      return pair(host, new MMPrefixAttentionRouting().withLowering(Lowering.BOTH_WINDOWS));
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
      Seq<AttentionBackend<? extends AttentionMetadata>> backends =
          work.hasImages()
              ? Vector.of(lowering(), new TritonAttnBackend(host))
              : Vector.of(new TritonCausalBackend(host));
      Seq<String> names =
          work.hasImages()
              ? Vector.of("pair, lowered", TritonAttnBackend.NAME.value())
              : Vector.of(TritonCausalBackend.NAME.value());
      return backends.zip(names).map(named -> row(named._1, named._2, work, timer));
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

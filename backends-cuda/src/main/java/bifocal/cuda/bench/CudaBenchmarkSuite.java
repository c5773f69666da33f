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

/**
 * Attention on this host's GPU: the backends as an engine runs them, over paged caches, beside
 * PyTorch's kernels over contiguous keys and values.
 */
public final class CudaBenchmarkSuite implements BenchmarkSuite {
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
      Seq<GpuRow> rows = rows();
      LinkedHashMap<String, Object> json =
          LinkedHashMap.<String, Object>of("device", context.device().name())
              .put("driver", context.driver().version())
              .put("versions", peers.versions().toJavaMap())
              .put("peers_note", peers.note())
              .put("command", "bifocal bench --suite gpu" + (request.quick() ? " --quick" : ""))
              .put("rows", rows.map(GpuRow::json).toJavaList())
              .put("host", costs.toJavaList());
      return new BenchmarkReport(text(rows, costs), json.toJavaMap());
    }

    private String text(Seq<GpuRow> rows, Seq<HostCosts> costs) {
      return context.device()
          + "\n"
          + (peers.note().isEmpty() ? "" : "no peers: " + peers.note() + "\n")
          + rows.map(GpuRow::line).mkString("\n")
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

    private Seq<GpuRow> rows() {
      GpuWork large = GpuWork.decode(32, 8, 128, 16, 4096, KvCacheDtype.AUTO);
      Seq<GpuRow> rows = Vector.empty();
      try (GpuScene<?> other =
              new GpuScene<>(new TritonCausalBackend(host), large, launch, memory, numbers);
          GpuTimer timer = new GpuTimer(context, launch.queue(), other::forward)) {
        for (GpuWork work : request.quick() ? GpuWork.quick() : GpuWork.all()) {
          if (request.wants(work.title())) {
            rows = rows.appendAll(rows(work, timer));
          }
        }
      }
      return rows;
    }

    private Seq<GpuRow> rows(GpuWork work, GpuTimer timer) {
      MMPrefixAttentionRouting routing = new MMPrefixAttentionRouting();
      Seq<AttentionBackend<? extends AttentionMetadata>> backends =
          work.hasImages()
              ? Vector.of(
                  pair(host, routing.withLowering(Lowering.BOTH_WINDOWS)),
                  new TritonAttnBackend(host))
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

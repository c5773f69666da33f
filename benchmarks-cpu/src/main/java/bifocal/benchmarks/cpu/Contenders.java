package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.Room.Guest;
import bifocal.benchmarks.cpu.ffi.Libtorch;
import bifocal.benchmarks.cpu.ffi.OnnxRuntime;
import bifocal.composite.CompositeBackends;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.error.BifocalException;
import bifocal.core.layer.LayerParameters;
import bifocal.core.route.RoutingPolicy;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.cpu.attention.KernelChoice;
import bifocal.cpu.kernel.CpuKernels;
import bifocal.cpu.thread.CpuThreads;
import bifocal.cpu.thread.ThreadBudget;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.nio.file.Path;
import java.util.HashMap;

/** Everybody who may compute a work here. */
final class Contenders {
  static final String VECTOR_API = "vector_api";
  static final String OURS = "ours";

  private final CpuKernels kernels = KernelChoice.ofThisJvm().kernels();
  private final Option<CpuKernels> vector = vectorKernels();
  private final Option<Libtorch> torch;
  private final Option<OnnxRuntime> onnx;
  private final java.util.Map<Integer, CpuThreads> threads = new HashMap<>();

  /** Those of this host and of a folder of peers. */
  Contenders(Option<Path> peers) {
    this.torch = peers.flatMap(Libtorch::in);
    this.onnx = peers.flatMap(OnnxRuntime::in);
  }

  private static Option<CpuKernels> vectorKernels() {
    try {
      return Option.some(KernelChoice.vector());
    } catch (BifocalException withoutModule) {
      return Option.none();
    }
  }

  /** Name of the kernels that are ours. */
  String kernels() {
    return kernels.name();
  }

  /** Versions of the peers, by name. */
  Map<String, String> versions() {
    Map<String, String> versions = LinkedHashMap.empty();
    versions = torch.isDefined() ? versions.put("libtorch", torch.get().version()) : versions;
    return onnx.isDefined() ? versions.put("onnxruntime", onnx.get().version()) : versions;
  }

  /** The scene of a work, written by our kernels. */
  Scene scene(Work work) {
    CpuRuntime runtime = new CpuRuntime(kernels, threads(1));
    return work.mask().seesImages()
        ? new Scene(work, new FlexAttentionBackend(runtime))
        : new Scene(work, new CpuAttnBackend(runtime));
  }

  /** What stores keys and values of a scene with our kernels, on one thread. */
  AttentionImpl<?> writer(Scene scene) {
    return new CpuAttnBackend(new CpuRuntime(kernels, threads(1)))
        .createImpl(scene.group().spec(), LayerParameters.NONE, scene.spec());
  }

  /**
   * Ours, and who may compute the same.
   *
   * @param java whether the Java kernels are wanted
   * @param others whether the peers are wanted, as far as they can do the work
   */
  Seq<Contender> of(Scene scene, int count, boolean java, boolean others) {
    Seq<Contender> all = Vector.of(contender(OURS, scene, kernels, count));
    if (java && vector.isDefined() && !vector.get().name().equals(kernels.name())) {
      all = all.append(contender(VECTOR_API, scene, vector.get(), count));
    }
    if (others && torch.isDefined()) {
      all = all.append(new LibtorchContender(torch.get(), scene, count));
    }
    return others && onnx.isDefined() && OnnxContender.serves(scene.work())
        ? all.append(new OnnxContender(onnx.get(), scene, count))
        : all;
  }

  /** The general child and the fast one, each by its name; the fast one gets images lowered. */
  Seq<Guest> children(Scene scene, int count) {
    CpuRuntime runtime = new CpuRuntime(kernels, threads(count));
    return Vector.of(
        new Guest(FlexAttentionBackend.NAME.value(), scene, new FlexAttentionBackend(runtime)),
        new Guest(CpuAttnBackend.NAME.value(), scene, backend(scene.work(), runtime)));
  }

  /** The composite by each way to route, and its general child. */
  Seq<Guest> routes(Scene scene, int count) {
    CpuRuntime runtime = new CpuRuntime(kernels, threads(count));
    MMPrefixAttentionRouting split = new MMPrefixAttentionRouting();
    return Vector.of(
        new Guest(
            CompositeRow.LOWERED, scene, pair(runtime, split.withLowering(Lowering.BOTH_WINDOWS))),
        new Guest(CompositeRow.SPLIT, scene, pair(runtime, split)),
        new Guest(CompositeRow.WHOLE_BATCH, scene, pair(runtime, split.wholeBatch())),
        new Guest(FlexAttentionBackend.NAME.value(), scene, new FlexAttentionBackend(runtime)));
  }

  private Contender contender(String name, Scene scene, CpuKernels chosen, int count) {
    return Room.of(
            Vector.of(
                new Guest(
                    name, scene, backend(scene.work(), new CpuRuntime(chosen, threads(count))))))
        .head();
  }

  /** The fast child, or where there are images both, with images lowered to the fast one. */
  private static AttentionBackend<?> backend(Work work, CpuRuntime runtime) {
    return work.mask().seesImages()
        ? pair(runtime, new MMPrefixAttentionRouting().withLowering(Lowering.BOTH_WINDOWS))
        : new CpuAttnBackend(runtime);
  }

  private static AttentionBackend<?> pair(CpuRuntime runtime, RoutingPolicy policy) {
    return CompositeBackends.createCompositeBackendOrThrow(
        new FlexAttentionBackend(runtime), new CpuAttnBackend(runtime), policy);
  }

  private CpuThreads threads(int count) {
    return threads.computeIfAbsent(
        count, n -> new CpuThreads(new ThreadBudget(n, "set by the benchmark")));
  }
}

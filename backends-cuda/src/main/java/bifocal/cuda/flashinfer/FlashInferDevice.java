package bifocal.cuda.flashinfer;

import bifocal.core.error.BifocalException;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.triton.TritonDevice;
import bifocal.tvm.ModuleFunction;
import bifocal.tvm.Signature;
import bifocal.tvm.TvmModule;
import bifocal.tvm.TvmRuntime;
import io.vavr.Tuple2;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.HashMap;

/**
 * A device with modules for it. A module is opened when it is first asked for, and stays as long as
 * the JVM. What modules do not have, a kernel that writes the cache and two that convert sums and
 * copy rows, is this project's own.
 *
 * <p>Safe for any thread.
 */
public final class FlashInferDevice implements AutoCloseable {
  private static final String RUNTIME = "libtvm_ffi.so";

  /** Bytes that the driver finds room in for the kernels of one module, many times over. */
  private static final long KERNEL_ROOM = 32 << 20;

  private final TritonDevice kernels;
  private final FlashInferPack pack;
  private final RowKernels.Source rows;
  private final java.util.Map<ModuleKey, LoadedModule> loaded = new HashMap<>();
  private Option<TvmRuntime> runtime = Option.none();
  private Option<RowKernels> own = Option.none();

  /**
   * A device of an open context.
   *
   * @param kernels this project's own kernels on that device; they outlive this
   */
  public FlashInferDevice(TritonDevice kernels, FlashInferPack pack) {
    this(kernels, pack, RowKernels.Source.OWN);
  }

  FlashInferDevice(TritonDevice kernels, FlashInferPack pack, RowKernels.Source rows) {
    this.kernels = kernels;
    this.pack = pack;
    this.rows = rows;
  }

  CudaContext context() {
    return kernels.context();
  }

  TritonDevice kernels() {
    return kernels;
  }

  /** The modules. */
  public FlashInferPack pack() {
    return pack;
  }

  int multiprocessors() {
    return context().device().multiprocessors();
  }

  /** This project's kernels beside the modules. */
  synchronized RowKernels rowKernels() {
    if (own.isEmpty()) {
      own = Option.some(RowKernels.load(context(), rows));
    }
    return own.get();
  }

  /**
   * The module that was compiled for this.
   *
   * @throws BifocalException {@code NATIVE_MISSING} that says what is missing or does not fit,
   *     {@code SIGNATURE_MISMATCH} naming the functions that are not as this build calls them,
   *     {@code DEVICE_MEMORY_EXHAUSTED} where there is no room for kernels that are loaded at once
   */
  synchronized LoadedModule module(ModuleKey wanted) {
    LoadedModule known = loaded.get(wanted);
    if (known != null) {
      return known;
    }
    ModuleEntry entry = required(pack.find(wanted));
    if (wanted instanceof ModuleKey.Xqa) {
      requireRoom();
    }
    TvmRuntime through = runtime();
    TvmModule library = through.open(required(pack.file(entry)));
    if (library.asksForCubins()) {
      library.serveCubins(new CubinFolder(pack.directory().resolve(CubinFolder.NAME)));
    }
    LoadedModule module = new LoadedModule(entry, through, functions(library, wanted));
    loaded.put(wanted, module);
    return module;
  }

  /**
   * Requires memory for the kernels of a module that loads them while it is opened, and takes no
   * notice if that fails: it would launch them with a size of shared memory that it never read.
   */
  private void requireRoom() {
    try (CudaMemory memory = CudaMemory.unlimited(context())) {
      memory.acquire("room for a module's kernels", KERNEL_ROOM).close();
    }
  }

  private TvmRuntime runtime() {
    if (runtime.isEmpty()) {
      runtime = Option.some(TvmRuntime.load(required(pack.runtimeFile(RUNTIME))));
    }
    return runtime.get();
  }

  private static Map<String, ModuleFunction> functions(TvmModule library, ModuleKey wanted) {
    Map<String, Signature> called = ModuleSignatures.of(wanted);
    Validation<Seq<BifocalException>, Map<String, ModuleFunction>> found =
        library.functions(called);
    if (found.isInvalid()) {
      Seq<BifocalException> reasons = found.getError();
      BifocalException first = reasons.head();
      reasons.tail().forEach(first::addSuppressed);
      throw first;
    }
    Map<String, ModuleFunction> functions = LinkedHashMap.empty();
    for (Tuple2<String, ModuleFunction> function : found.get()) {
      functions = functions.put(function);
    }
    return functions;
  }

  private static <T> T required(Validation<PackRefusal, T> found) {
    return found.fold(
        refusal -> {
          throw refusal.asException();
        },
        value -> value);
  }

  /** Unloads this project's own kernels; modules stay. Closing twice is harmless. */
  @Override
  public synchronized void close() {
    Option<RowKernels> mine = own;
    own = Option.none();
    mine.forEach(kernels -> kernels.library().close());
  }
}

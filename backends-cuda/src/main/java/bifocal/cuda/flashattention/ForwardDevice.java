package bifocal.cuda.flashattention;

import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.flashinfer.FlashInferPack;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.triton.TritonDevice;
import bifocal.tvm.ModuleFunction;
import bifocal.tvm.TvmRuntime;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * A device with forwards for it. A forward is opened when it is first asked for, and stays as long
 * as the JVM. What writes the cache is this project's own kernel.
 *
 * <p>Safe for any thread.
 */
public final class ForwardDevice {
  private static final String RUNTIME = "libtvm_ffi.so";

  private final TritonDevice kernels;
  private final ForwardPack pack;
  private final Map<ForwardKey, ModuleFunction> loaded = new HashMap<>();
  private Option<TvmRuntime> runtime = Option.none();

  /**
   * A device of an open context.
   *
   * @param kernels this project's own kernels on that device; they outlive this
   */
  public ForwardDevice(TritonDevice kernels, ForwardPack pack) {
    this.kernels = kernels;
    this.pack = pack;
  }

  CudaContext context() {
    return kernels.context();
  }

  TritonDevice kernels() {
    return kernels;
  }

  ForwardPack pack() {
    return pack;
  }

  /**
   * The forward that was compiled for this.
   *
   * @throws bifocal.core.error.BifocalException {@code NATIVE_MISSING} that says what is missing
   */
  synchronized ModuleFunction function(ForwardKey wanted) {
    ModuleFunction known = loaded.get(wanted);
    if (known == null) {
      ForwardEntry entry = required(pack.find(wanted));
      Path file = required(pack.file(entry));
      known = runtime().open(file).function(entry.function());
      loaded.put(wanted, known);
    }
    return known;
  }

  private TvmRuntime runtime() {
    if (runtime.isEmpty()) {
      runtime = Option.some(TvmRuntime.load(runtimeFile()));
    }
    return runtime.get();
  }

  /** A process has one runtime: where FlashInfer's modules are, it is theirs. */
  private Path runtimeFile() {
    Path folder = pack.directory().getFileName();
    Path shared =
        pack.directory()
            .resolveSibling(Path.of("..", FlashInferPack.FOLDER, folder.toString(), RUNTIME))
            .normalize();
    return Files.isRegularFile(shared) ? shared : required(pack.runtimeFile(RUNTIME));
  }

  private static <T> T required(Validation<PackRefusal, T> found) {
    return found.fold(
        refusal -> {
          throw refusal.asException();
        },
        value -> value);
  }
}

package bifocal.cuda.triton;

import bifocal.core.device.ComputeCapability;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaDevice;
import bifocal.cuda.driver.CudaDriver;
import bifocal.cuda.pack.FoundOnce;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.PackRefusal;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.nio.file.Path;
import java.util.function.Supplier;

/**
 * The device whose kernels backends run, or the failure that says why there is none. It is looked
 * for once, when it is first asked for.
 */
public final class TritonHost {
  /** System property that names the directory of kernel packs. */
  public static final String PROPERTY = "bifocal.cuda.packs";

  /** Environment variable that names it where the property does not. */
  public static final String ENVIRONMENT = "BIFOCAL_CUDA_PACKS";

  private static final class Shared {
    static final TritonHost HOST = new TritonHost(TritonHost::search);
  }

  private final FoundOnce<TritonDevice> found;

  private TritonHost(Supplier<Validation<BifocalException, TritonDevice>> search) {
    this.found = new FoundOnce<>(search);
  }

  /** The first device of this host, with the packs that {@link #PROPERTY} names. */
  public static TritonHost ofThisJvm() {
    return Shared.HOST;
  }

  /** A host with this device. */
  public static TritonHost with(TritonDevice device) {
    return new TritonHost(() -> Validation.valid(device));
  }

  /** A host without a device. */
  public static TritonHost without(BifocalException why) {
    return new TritonHost(() -> Validation.invalid(why));
  }

  /** The device, or why there is none. */
  public Validation<BifocalException, TritonDevice> device() {
    return found.result();
  }

  /**
   * The device.
   *
   * @throws BifocalException {@code NATIVE_MISSING} that says in one line what is missing
   */
  TritonDevice require() {
    return found.require();
  }

  private static Validation<BifocalException, TritonDevice> search() {
    CudaDriver driver = CudaDriver.load();
    ComputeCapability capability = CudaDevice.of(driver, 0).capability();
    return KernelPack.open(packs(), capability)
        .mapError(PackRefusal::asException)
        .map(pack -> TritonDevice.of(CudaContext.primary(driver, 0), pack));
  }

  /** The directory of kernel packs, where one was named. */
  public static Option<Path> named() {
    return Option.of(System.getProperty(PROPERTY))
        .orElse(() -> Option.of(System.getenv(ENVIRONMENT)))
        .map(Path::of);
  }

  private static Path packs() {
    return named()
        .getOrElseThrow(
            () ->
                BifocalException.of(
                        ErrorCode.NATIVE_MISSING,
                        "kernel packs",
                        "neither -D" + PROPERTY + " nor " + ENVIRONMENT + " is set",
                        "the directory of a pack for this device")
                    .withRemedy(
                        "build one with kernels/triton/build_packs.py and name its directory"));
  }
}

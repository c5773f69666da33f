package bifocal.cuda.flashinfer;

import bifocal.core.error.BifocalException;
import bifocal.cuda.pack.FoundOnce;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.triton.TritonDevice;
import bifocal.cuda.triton.TritonHost;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.nio.file.Path;
import java.util.function.Supplier;

/**
 * The device whose modules backends call, or the failure that says why there is none. It is looked
 * for once, when it is first asked for.
 */
public final class FlashInferHost {
  private final FoundOnce<FlashInferDevice> found;

  private FlashInferHost(Supplier<Validation<BifocalException, FlashInferDevice>> search) {
    this.found = new FoundOnce<>(search);
  }

  /** The device of a host's kernels, with the modules in the folder beside their packs. */
  public static FlashInferHost beside(TritonHost kernels) {
    return new FlashInferHost(() -> kernels.device().flatMap(FlashInferHost::search));
  }

  /** A host with this device. */
  public static FlashInferHost with(FlashInferDevice device) {
    return new FlashInferHost(() -> Validation.valid(device));
  }

  /** A host without a device. */
  public static FlashInferHost without(BifocalException why) {
    return new FlashInferHost(() -> Validation.invalid(why));
  }

  private static Validation<BifocalException, FlashInferDevice> search(TritonDevice kernels) {
    Path directory = kernels.pack().directory().toAbsolutePath();
    Path packs = Option.of(directory.getParent()).getOrElse(directory);
    return FlashInferPack.open(packs, kernels.context().device().capability())
        .mapError(PackRefusal::asException)
        .map(pack -> new FlashInferDevice(kernels, pack));
  }

  /** The device, or why there is none. */
  public Validation<BifocalException, FlashInferDevice> device() {
    return found.result();
  }

  /**
   * The device.
   *
   * @throws BifocalException {@code NATIVE_MISSING} that says in one line what is missing
   */
  FlashInferDevice require() {
    return found.require();
  }
}

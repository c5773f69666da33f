package bifocal.cuda.flashattention;

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
 * The device whose forwards a backend calls, or the failure that says why there is none. It is
 * looked for once, when it is first asked for.
 */
public final class ForwardHost {
  private final FoundOnce<ForwardDevice> found;

  private ForwardHost(Supplier<Validation<BifocalException, ForwardDevice>> search) {
    this.found = new FoundOnce<>(search);
  }

  /** The device of a host's kernels, with the forwards in the folder beside their packs. */
  public static ForwardHost beside(TritonHost kernels) {
    return new ForwardHost(() -> kernels.device().flatMap(ForwardHost::search));
  }

  /** A host with this device. */
  public static ForwardHost with(ForwardDevice device) {
    return new ForwardHost(() -> Validation.valid(device));
  }

  private static Validation<BifocalException, ForwardDevice> search(TritonDevice kernels) {
    Path directory = kernels.pack().directory().toAbsolutePath();
    Path packs = Option.of(directory.getParent()).getOrElse(directory);
    return ForwardPack.open(packs, kernels.context().device().capability())
        .mapError(PackRefusal::asException)
        .map(pack -> new ForwardDevice(kernels, pack));
  }

  /** The device, or why there is none. */
  public Validation<BifocalException, ForwardDevice> device() {
    return found.result();
  }

  /**
   * The device.
   *
   * @throws BifocalException {@code NATIVE_MISSING} that says in one line what is missing
   */
  ForwardDevice require() {
    return found.require();
  }
}

package bifocal.cuda.triton;

import bifocal.core.error.BifocalException;
import bifocal.core.host.Finding;
import bifocal.core.host.HostCheck;
import bifocal.cuda.driver.CudaProbe;
import bifocal.cuda.pack.KernelPack;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.function.Supplier;

/** The kernel pack of this host's device; nothing is said of packs where there is no device. */
public final class KernelPackCheck implements HostCheck {
  private static final String TOPIC = "cuda-packs";

  private final TritonHost host;
  private final Supplier<CudaProbe> probe;

  KernelPackCheck(TritonHost host, Supplier<CudaProbe> probe) {
    this.host = host;
    this.probe = probe;
  }

  /** The check of a host's packs. */
  public static KernelPackCheck of(TritonHost host) {
    return new KernelPackCheck(host, CudaProbe::look);
  }

  @Override
  public Seq<Finding> findings() {
    return switch (probe.get()) {
      case CudaProbe.Absent absent -> Vector.empty();
      case CudaProbe.Present present ->
          Vector.of(host.device().fold(KernelPackCheck::missing, device -> found(device.pack())));
    };
  }

  private static Finding missing(BifocalException why) {
    return Finding.limited(TOPIC, why.getMessage().replace("; " + why.remedy(), ""), why.remedy());
  }

  private static Finding found(KernelPack pack) {
    return Finding.good(
        TOPIC,
        pack.directory()
            + ": "
            + pack.manifest().kernels().size()
            + " kernels for "
            + pack.manifest().target()
            + ", Triton "
            + pack.manifest().triton());
  }
}

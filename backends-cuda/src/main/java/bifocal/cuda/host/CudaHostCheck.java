package bifocal.cuda.host;

import bifocal.core.error.BifocalException;
import bifocal.core.host.Finding;
import bifocal.core.host.HostCheck;
import bifocal.core.host.HostFiles;
import bifocal.cuda.driver.CudaDriver;
import bifocal.cuda.driver.CudaProbe;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.function.Supplier;

/** The NVIDIA driver, and the devices that it sees. */
public final class CudaHostCheck implements HostCheck {
  private static final String TOPIC = "cuda";
  private static final String IN_KERNEL = "/proc/driver/nvidia/version";

  private final HostFiles files;
  private final Supplier<CudaProbe> probe;
  private final boolean named;

  CudaHostCheck(HostFiles files, Supplier<CudaProbe> probe, boolean named) {
    this.files = files;
    this.probe = probe;
    this.named = named;
  }

  /** The check of this host. */
  public static CudaHostCheck ofThisHost() {
    return new CudaHostCheck(
        HostFiles.ofThisHost(), CudaProbe::look, System.getProperty(CudaDriver.PROPERTY) != null);
  }

  @Override
  public Seq<Finding> findings() {
    CudaProbe found = probe.get();
    return Vector.of(
        switch (found) {
          case CudaProbe.Present present -> Finding.good(TOPIC, present.line());
          case CudaProbe.Absent absent -> missing(absent.why());
        });
  }

  private Finding missing(BifocalException why) {
    String seen = why.getMessage().replace("; " + why.remedy(), "");
    if (named) {
      return Finding.failed(TOPIC, seen, why.remedy());
    }
    return files
        .lines(IN_KERNEL)
        .headOption()
        .map(
            version ->
                Finding.limited(
                    TOPIC,
                    seen + ", though the kernel has " + version.strip(),
                    why.remedy() + " (in a container: start it with its GPUs)"))
        .getOrElse(() -> Finding.absent(TOPIC, seen, why.remedy()));
  }
}

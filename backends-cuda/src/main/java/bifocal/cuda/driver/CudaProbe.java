package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import io.vavr.collection.Seq;
import java.util.function.Supplier;

/** What a look for CUDA devices on this host found. */
public sealed interface CudaProbe {
  /**
   * The driver is here and sees devices.
   *
   * @param driver the driver
   * @param devices at least one
   */
  record Present(CudaDriver driver, Seq<CudaDevice> devices) implements CudaProbe {}

  /**
   * There is nothing to run on.
   *
   * @param why what was looked for where, what was found, and what to do
   */
  record Absent(BifocalException why) implements CudaProbe {}

  /** Looks for the driver that the system or {@link CudaDriver#PROPERTY} names. Never throws. */
  static CudaProbe look() {
    return look(CudaDriver::load);
  }

  /** Looks for a driver by name or path. Never throws. */
  static CudaProbe look(String library) {
    return look(() -> CudaDriver.load(library));
  }

  private static CudaProbe look(Supplier<CudaDriver> found) {
    try {
      CudaDriver driver = found.get();
      Seq<CudaDevice> devices = driver.devices();
      return devices.isEmpty() ? new Absent(CudaDevice.absent(0, 0)) : new Present(driver, devices);
    } catch (BifocalException why) {
      return new Absent(why);
    }
  }

  /** One line for a report. */
  default String line() {
    return switch (this) {
      case Present present ->
          "CUDA driver " + present.driver() + ": " + present.devices().mkString("; ");
      case Absent absent -> absent.why().getMessage();
    };
  }
}

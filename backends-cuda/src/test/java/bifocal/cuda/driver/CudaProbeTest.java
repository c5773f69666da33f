package bifocal.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.cuda.driver.CudaProbe.Absent;
import bifocal.cuda.driver.CudaProbe.Present;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.select.CudaBackends;
import io.vavr.collection.HashSet;
import org.junit.jupiter.api.Test;

/** A look for devices tells what is here, or why nothing is; it never throws. */
final class CudaProbeTest {
  @Test
  void aDeviceIsDescribed() {
    FakeCuda fake = FakeCuda.resetOrSkip();

    CudaProbe probe = CudaProbe.look(fake.file().toString());

    assertThat(probe).isInstanceOf(Present.class);
    assertThat(probe.line())
        .contains("CUDA 13.0", "cuda:0 Fake device 0, compute capability 9.0, 132 multiprocessors");
  }

  @Test
  void withoutADriverItSaysWhatWasTriedAndWhatToDo() {
    CudaProbe probe = CudaProbe.look("libno_such_cuda.so.1");

    assertThat(probe).isInstanceOf(Absent.class);
    assertThat(probe.line()).contains("libno_such_cuda.so.1", "install the NVIDIA driver");
  }

  @Test
  void aDriverThatSeesNoDeviceSaysSo() {
    FakeCuda fake = FakeCuda.resetOrSkip();
    fake.devices(0, 9, 0, 0);

    CudaProbe probe = CudaProbe.look(fake.file().toString());

    assertThat(probe.line()).contains("the driver sees none", "CUDA_VISIBLE_DEVICES");
  }

  @Test
  void aDriverThatFailsIsAbsentWithItsText() {
    FakeCuda fake = FakeCuda.resetOrSkip();
    fake.driver();
    fake.fail("cuDeviceGetName", 1, 401);

    assertThat(CudaProbe.look(fake.file().toString()).line())
        .contains("cuDeviceGetName", "401 CUDA_ERROR_ILLEGAL_STATE");
  }

  @Test
  void thePlatformOffersTheFirstDeviceThatTheNamedLibrarySees() {
    FakeCuda fake = FakeCuda.resetOrSkip();
    String before = System.getProperty(CudaDriver.PROPERTY, CudaDriver.LIBRARY);
    System.setProperty(CudaDriver.PROPERTY, fake.file().toString());
    try {
      assertThat(CudaBackends.policy().probe())
          .containsExactly(
              new DeviceProfile.Cuda(new ComputeCapability(9, 0), HashSet.empty(), false));
    } finally {
      System.setProperty(CudaDriver.PROPERTY, before);
    }
  }
}

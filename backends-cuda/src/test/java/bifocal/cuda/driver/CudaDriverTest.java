package bifocal.cuda.driver;

import static bifocal.cuda.fake.Refusals.refused;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.device.ComputeCapability;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.fake.FakeCuda;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A driver that cannot be used is told apart: not there, does not load, too old, no device. */
final class CudaDriverTest {
  private static Consumer<Throwable> missing(String... texts) {
    return refused(ErrorCode.NATIVE_MISSING, texts);
  }

  @Test
  void aFileThatIsNotThereIsNamed(@TempDir Path folder) {
    Path file = folder.resolve("libcuda.so.1");

    assertThatThrownBy(() -> CudaDriver.load(file.toString()))
        .satisfies(missing(file.toString(), "is not there", CudaDriver.PROPERTY));
  }

  @Test
  void aNameThatTheLoaderDoesNotFindTellsWhatToInstall() {
    assertThatThrownBy(() -> CudaDriver.load("libno_such_cuda.so.1"))
        .satisfies(missing("libno_such_cuda.so.1", "not found", "install the NVIDIA driver"));
  }

  @Test
  void aFileThatIsNoLibraryTellsTheLoadersText(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("libcuda.so.1"), "no library");

    assertThatThrownBy(() -> CudaDriver.load(file.toString()))
        .satisfies(missing("cannot be loaded", "file too short"));
  }

  @Test
  void aLibraryThatLacksSymbolsIsTooOldAndNamesAllOfThem(@TempDir Path folder) throws IOException {
    Path code = Files.writeString(folder.resolve("old.c"), OLD);
    Path library = folder.resolve("old.so");
    FakeCuda.compile(code, library);

    assertThatThrownBy(() -> CudaDriver.load(library.toString()))
        .satisfies(
            missing("too old", "cuLibraryLoadData", "cuKernelGetParamInfo", "CUDA 12.4 or newer"))
        .satisfies(thrown -> assertThat(thrown.getMessage()).doesNotContain("cuInit"));
  }

  private static final String OLD =
      """
      #define EXPORT __attribute__((visibility("default")))
      EXPORT int cuInit(unsigned flags) { return 0; }
      """;

  @Test
  void aHostWithoutDevicesGetsTheDriversTextAndMayTryAgain(@TempDir Path folder)
      throws IOException {
    FakeCuda fake = FakeCuda.copyOrSkip(folder);
    fake.fail("cuInit", 1, 100);

    assertThatThrownBy(fake::driver)
        .satisfies(missing("cuInit failed", "100 CUDA_ERROR_NO_DEVICE", "CUDA_VISIBLE_DEVICES"));
    assertThat(fake.driver().version()).isEqualTo("13.0");
  }

  @Test
  void aDriverThatDoesNotTellItsVersionIsRefused(@TempDir Path folder) throws IOException {
    FakeCuda fake = FakeCuda.copyOrSkip(folder);
    fake.fail("cuDriverGetVersion", 1, 401);

    assertThatThrownBy(fake::driver).satisfies(missing("version", "401 CUDA_ERROR_ILLEGAL_STATE"));
  }

  @Test
  void aLibraryIsBoundOnce() {
    FakeCuda fake = FakeCuda.resetOrSkip();

    assertThat(fake.driver()).isSameAs(fake.driver());
  }

  @Test
  void devicesAreDescribedInTheDriversOrder() {
    FakeCuda fake = FakeCuda.resetOrSkip();
    fake.devices(2, 10, 3, 5L << 30);

    assertThat(fake.driver().devices())
        .containsExactly(
            new CudaDevice(
                0, 0, "Fake device 0", new ComputeCapability(10, 3), 132, 5L << 30, 232448, true),
            new CudaDevice(
                1, 1, "Fake device 1", new ComputeCapability(10, 3), 132, 5L << 30, 232448, true));
  }

  @Test
  void aDeviceThatIsNotThereIsRefusedWithThoseThatAre() {
    FakeCuda fake = FakeCuda.resetOrSkip();

    assertThatThrownBy(() -> CudaDevice.of(fake.driver(), 1)).satisfies(missing("1", "0..0"));
  }

  @Test
  void anErrorHasTheDriversNameAndText() {
    CudaDriver driver = FakeCuda.resetOrSkip().driver();

    assertThat(driver.error(716))
        .isEqualTo(new CudaError(716, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"));
  }

  @Test
  void anErrorThatTheDriverDoesNotKnowSaysSo() {
    CudaDriver driver = FakeCuda.resetOrSkip().driver();

    assertThat(driver.error(12345))
        .isEqualTo(new CudaError(12345, "unknown to the driver", "no text"));
  }
}

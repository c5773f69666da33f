package bifocal.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Codes of the driver fall into four kinds. */
final class CudaErrorTest {
  private static BifocalException failure(int code) {
    return new CudaError(code, "NAME", "text").failure("cuFunction");
  }

  @ParameterizedTest
  @ValueSource(
      ints = {214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 721, 810, 999})
  void aFaultThatEndsAContextLosesTheDevice(int code) {
    assertThat(failure(code).code()).isEqualTo(ErrorCode.DEVICE_LOST);
    assertThat(failure(code).remedy()).contains("new process");
  }

  @ParameterizedTest
  @CsvSource({
    "1, NATIVE_FAILED",
    "2, DEVICE_MEMORY_EXHAUSTED",
    "200, NATIVE_FAILED",
    "209, NATIVE_FAILED",
    "400, NATIVE_FAILED",
    "500, NATIVE_FAILED",
    "701, NATIVE_FAILED",
    "720, NATIVE_FAILED",
    "899, NATIVE_FAILED",
    "900, NOT_CAPTURABLE",
    "901, NOT_CAPTURABLE",
    "908, NOT_CAPTURABLE",
    "909, NATIVE_FAILED"
  })
  void anotherCodeLosesNothing(int code, ErrorCode kind) {
    assertThat(failure(code).code()).isEqualTo(kind);
    assertThat(failure(code)).hasMessageContaining(code + " NAME (text)");
  }
}

package bifocal.benchmarks.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class CpuBenchmarkSuiteTest {
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aTextThatNoWorkHoldsIsRefusedBeforeAnythingIsMeasured(boolean quick) {
    List<String> progress = new ArrayList<>();
    BenchmarkRequest request =
        new BenchmarkRequest(quick, Option.some("nosuch"), Option.none(), progress::add);

    BifocalException refused =
        catchThrowableOfType(BifocalException.class, () -> new CpuBenchmarkSuite().run(request));

    assertThat(refused.code()).isEqualTo(ErrorCode.INVALID_OPTION);
    assertThat(refused).hasMessageContaining("nosuch");
    assertThat(progress).isEmpty();
  }
}

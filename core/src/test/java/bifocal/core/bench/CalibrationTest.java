package bifocal.core.bench;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.BackendName;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Tables of measurements: what they say, and where they count. */
class CalibrationTest {
  private static final Provenance HERE =
      new Provenance(
          "a processor",
          "cpu avx512bf16",
          "native, 2 threads",
          "25.0.1",
          "0.1.0",
          "abc",
          "2026-01-02T03:04:05Z",
          "bifocal bench --calibrate");
  private static final BenchmarkRequest REQUEST =
      new BenchmarkRequest(true, Option.none(), Option.none(), line -> {});
  private static final Calibration TABLE =
      new Calibration(
          HERE,
          Vector.of(
              new ChildTime(
                  BackendName.of("CPU_ATTN"), DType.BF16, 256, Phase.DECODE, 1, 4096, 0.25),
              new ChildTime(
                  BackendName.of("FLEX_ATTENTION"),
                  DType.FP32,
                  64,
                  Phase.IMAGE,
                  512,
                  512,
                  1.5e-3)));

  @Test
  void aTableIsReadAsItWasWritten() {
    assertThat(CalibrationJson.read(CalibrationJson.write(TABLE))).isEqualTo(TABLE);
  }

  @Test
  void aTableCountsWhereItWasMeasured() {
    assertThat(TABLE.validHere(HERE).get()).isSameAs(TABLE);
    assertThat(TABLE.requireValidHere(later(HERE))).isSameAs(TABLE);
  }

  private static Provenance later(Provenance of) {
    return new Provenance(
        of.machine(),
        of.device(),
        of.kernels(),
        of.java(),
        of.version(),
        of.commit(),
        "2027-01-01T00:00:00Z",
        "another command");
  }

  @ParameterizedTest(name = "{0}")
  @CsvSource({
    "machine, 0, another",
    "device, 1, cpu amx",
    "kernels, 2, 'native, 1 threads'",
    "Java, 3, 25.0.2",
    "Bifocal, 4, 0.2.0",
    "commit, 5, def",
  })
  void elsewhereATableIsRefusedForItsReason(String what, int field, String other) {
    String[] fields = {
      HERE.machine(), HERE.device(), HERE.kernels(), HERE.java(), HERE.version(), HERE.commit()
    };
    String measured = fields[field];
    fields[field] = other;
    Provenance elsewhere =
        new Provenance(
            fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], "later", "measure");

    assertThat(TABLE.validHere(elsewhere).getError())
        .containsExactly(what + ": measured on " + measured + ", here is " + other);
    assertThatThrownBy(() -> TABLE.requireValidHere(elsewhere))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_OPTION))
        .hasMessageContaining("calibration of 2026-01-02T03:04:05Z is not used: " + what)
        .hasMessageContaining("measure again with bifocal bench --calibrate");
  }

  @ParameterizedTest
  @CsvSource({"unknown, abc", "abc, unknown", "unknown, unknown"})
  void outsideACheckoutCommitsAreNotCompared(String measured, String here) {
    assertThat(committed(measured).objections(committed(here))).isEmpty();
  }

  private static Provenance committed(String commit) {
    return new Provenance("m", "d", "k", "j", "v", commit, "t", "c");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{ | JSON",
        "[] | an object",
        "{'format':'bifocal-calibration-1'} | format, provenance, times",
        "{'format':'x','provenance':{},'times':[]} | bifocal-calibration-1",
        "{'format':'bifocal-calibration-1','provenance':{},'times':[]} | machine, device",
        "{'format':'bifocal-calibration-1','provenance':{},'times':{}} | an array",
      })
  void whatIsNoTableIsRefused(String text, String wanted) {
    assertThatThrownBy(() -> CalibrationJson.read(text.replace('\'', '"')))
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.MALFORMED_INPUT))
        .hasMessageContaining(wanted);
  }

  @ParameterizedTest
  @CsvSource({
    "\"dtype\":\"bf16\", \"dtype\":\"bf17\"",
    "\"phase\":\"decode\", \"phase\":\"later\"",
    "\"head_size\":256, \"head_size\":2.5",
    "\"head_size\":256, \"head_size\":0",
    "\"query_len\":1, \"query_len\":5000",
    "\"nanos_per_pair\":0.25, \"nanos_per_pair\":0",
    "\"nanos_per_pair\":0.25, \"nanos_per_pair\":-1",
    "\"nanos_per_pair\":0.25, \"nanos_per_pair\":\"fast\"",
    "\"child\":\"CPU_ATTN\", \"child\":7",
    "\"child\":\"CPU_ATTN\", \"children\":\"CPU_ATTN\"",
  })
  void aTimeThatNobodyCanHaveMeasuredIsRefused(String right, String wrong) {
    String text = CalibrationJson.write(TABLE);
    assertThat(text).contains(right);

    assertThatThrownBy(() -> CalibrationJson.read(text.replace(right, wrong)))
        .isInstanceOf(BifocalException.class);
  }

  @Test
  void aSuiteWithoutChildrenSaysSo() {
    BenchmarkSuite suite =
        new BenchmarkSuite() {
          @Override
          public String name() {
            return "host";
          }

          @Override
          public BenchmarkReport run(BenchmarkRequest request) {
            throw new AssertionError("not asked to");
          }
        };

    assertThatThrownBy(() -> suite.calibrate(REQUEST))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("suite host");
  }
}

package bifocal.cli.bench;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.command.CommandRun;
import bifocal.cli.command.CommandRunner;
import bifocal.cli.command.Installed;
import bifocal.core.backend.BackendName;
import bifocal.core.bench.BenchmarkReport;
import bifocal.core.bench.BenchmarkRequest;
import bifocal.core.bench.BenchmarkSuite;
import bifocal.core.bench.Calibration;
import bifocal.core.bench.CalibrationJson;
import bifocal.core.bench.ChildTime;
import bifocal.core.device.Platform;
import bifocal.core.tensor.DType;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

final class BenchCommandTest {
  private final Recorder cpu = new Recorder("cpu");
  private final Recorder gpu = new Recorder("gpu");

  private CommandRun run(String... arguments) {
    return CommandRun.of(
        "",
        console ->
            new CommandRunner(
                    new CommandLine(new BenchCommand(console, List.of(gpu, cpu))), console)
                .run(arguments));
  }

  @Test
  void theCpuIsMeasuredUnlessAnotherSuiteIsNamed() {
    assertThat(run("--quick").out()).isEqualTo("cpu, quick\n");
    assertThat(run("--suite=gpu").out()).isEqualTo("gpu, all\n");
  }

  @Test
  void aSuiteThatIsNotInTheBuildIsRefused() {
    CommandRun run = run("--suite", "host");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("no suite host in this build");
  }

  @Test
  void progressGoesToTheErrorStreamAndJsonAlsoToAFile(@TempDir Path folder) throws IOException {
    Path file = folder.resolve("bench.json");

    CommandRun run = run("--quick", "--only", "decode", "--format", "json", "--json", "" + file);

    assertThat(run.out()).isEqualTo("{\"suite\":\"cpu\"}\n");
    assertThat(run.err()).isEqualTo("measuring\n");
    assertThat(Files.readString(file)).isEqualToIgnoringNewLines(run.out());
    assertThat(cpu.asked).singleElement().returns(false, request -> request.wants("prefill"));
    assertThat(cpu.asked).singleElement().returns(true, request -> request.wants("a decode"));
  }

  @Test
  void documentsGetResultsAPictureAndTheirSectionOfThePage(@TempDir Path folder)
      throws IOException {
    Path page = folder.resolve("performance.md");
    Files.writeString(page, "before\n<!-- cpu -->\nold\n<!-- end of cpu -->\nafter\n");

    CommandRun run = run("--docs", folder.toString());

    assertThat(run.status()).isZero();
    assertThat(Files.readString(page))
        .isEqualTo("before\n<!-- cpu -->\n\na table\n<!-- end of cpu -->\nafter\n");
    assertThat(folder.resolve("results/cpu.svg")).hasContent("<svg/>");
    assertThat(folder.resolve("results/cpu.json")).hasContent("{\"suite\":\"cpu\"}");
  }

  @ParameterizedTest
  @ValueSource(strings = {"--json", "--docs"})
  void whatCannotBeWrittenIsRefusedBeforeAnythingIsMeasured(String option, @TempDir Path folder)
      throws IOException {
    Path file = Files.writeString(folder.resolve("file"), "kept");

    for (Path to : List.of(file.resolve("below"), folder.resolve("none").resolve("below"))) {
      CommandRun run = run(option, to.toString());

      assertThat(run.err()).startsWith("bifocal: " + option).hasLineCount(1);
      assertThat(run.status()).isEqualTo(2);
      assertThat(cpu.asked).isEmpty();
    }
  }

  @Test
  void aCalibrationThatCannotBeWrittenIsNotMeasured(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("file"), "kept");

    CommandRun run = run("--calibrate", "--json", file.resolve("below").toString());

    assertThat(run.err()).startsWith("bifocal: --json").hasLineCount(1);
    assertThat(cpu.asked).isEmpty();
  }

  @Test
  void aPageWithoutASectionIsRefused(@TempDir Path folder) throws IOException {
    Files.writeString(folder.resolve("performance.md"), "nothing\n");

    assertThat(run("--docs", folder.toString()).status()).isEqualTo(2);
  }

  @Test
  void aCalibrationIsWrittenWithItsProvenance(@TempDir Path folder) throws IOException {
    Installed.require(Platform.CPU);
    Path file = folder.resolve("new/calibration.json");

    CommandRun run = run("--calibrate", "--quick", "--json", "" + file);
    Calibration table = CalibrationJson.read(Files.readString(file));

    assertThat(run.status()).isZero();
    assertThat(run.out())
        .contains("FAST")
        .contains("0.25000")
        .endsWith("written to " + file + "\n");
    assertThat(table.times()).containsExactly(Recorder.TIME);
    assertThat(table.provenance().command())
        .isEqualTo("bifocal bench --calibrate --suite cpu --quick");
    assertThat(table.provenance().device()).startsWith("cpu ");
    assertThat(table.provenance().kernels()).contains("threads");
    assertThat(cpu.asked).singleElement().returns(true, BenchmarkRequest::quick);
  }

  @Test
  void aCalibrationIsAlsoPrintedAsJson(@TempDir Path folder) throws IOException {
    Installed.require(Platform.CPU);
    Path file = folder.resolve("calibration.json");

    CommandRun run = run("--calibrate", "--format", "json", "--json", "" + file);

    assertThat(run.out()).isEqualTo(Files.readString(file));
  }

  @Test
  void aSuiteWithoutChildrenRefusesToCalibrate(@TempDir Path folder) {
    CommandRun run = run("--calibrate", "--suite", "gpu", "--json", folder + "/table.json");

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("suite gpu").contains("a suite that times children");
    assertThat(folder.resolve("table.json")).doesNotExist();
  }

  @Test
  void aCalibrationHasNoPage(@TempDir Path folder) {
    assertThat(run("--calibrate", "--docs", "" + folder).status()).isEqualTo(2);
  }

  private static final class Recorder implements BenchmarkSuite {
    private static final ChildTime TIME =
        new ChildTime(BackendName.of("FAST"), DType.BF16, 128, ChildTime.Phase.DECODE, 1, 64, 0.25);

    private final String name;
    private final List<BenchmarkRequest> asked = new ArrayList<>();

    Recorder(String name) {
      this.name = name;
    }

    @Override
    public String name() {
      return name;
    }

    @Override
    public Seq<ChildTime> calibrate(BenchmarkRequest request) {
      asked.add(request);
      return name.equals("cpu") ? Vector.of(TIME) : BenchmarkSuite.super.calibrate(request);
    }

    @Override
    public BenchmarkReport run(BenchmarkRequest request) {
      asked.add(request);
      request.progress().accept("measuring");
      return new BenchmarkReport(
          name + (request.quick() ? ", quick" : ", all") + "\n",
          LinkedHashMap.of("suite", name),
          Option.some(new BenchmarkReport.Page("a table", "<svg/>")));
    }
  }
}

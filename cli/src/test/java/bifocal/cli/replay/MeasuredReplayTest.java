package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.backend.HostProvenance;
import bifocal.cli.command.CommandRun;
import bifocal.cli.command.Installed;
import bifocal.core.backend.BackendName;
import bifocal.core.bench.Calibration;
import bifocal.core.bench.CalibrationJson;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.ChildTime.Phase;
import bifocal.core.bench.Provenance;
import bifocal.core.device.Platform;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** A replay whose routes measured times choose. */
class MeasuredReplayTest {
  private static final String VERSION = "bifocal 0.1.0-SNAPSHOT";

  @TempDir private Path folder;

  @BeforeEach
  void needsTheCpu() {
    Installed.require(Platform.CPU);
  }

  private static Provenance here() {
    return HostProvenance.now(Platform.CPU, VERSION, "a test");
  }

  /** A table that knows both layer groups of the model, in which one child is faster. */
  private static Seq<ChildTime> times(double general, double fast, int... headSizes) {
    Seq<ChildTime> times = Vector.empty();
    for (int headSize : headSizes) {
      for (Phase phase : Phase.values()) {
        times =
            times
                .append(time("FLEX_ATTENTION", headSize, phase, general))
                .append(time("CPU_ATTN", headSize, phase, fast));
      }
    }
    return times;
  }

  private static ChildTime time(String child, int headSize, Phase phase, double nanos) {
    return new ChildTime(BackendName.of(child), DType.BF16, headSize, phase, 1, 64, nanos);
  }

  private CommandRun replay(Provenance provenance, Seq<ChildTime> times, String... options)
      throws IOException {
    Path table = folder.resolve("calibration.json");
    Files.writeString(table, CalibrationJson.write(new Calibration(provenance, times)));
    return SmallReplay.in(
        folder,
        Vector.of("--calibration=" + table, "--report=" + folder)
            .appendAll(Vector.of(options))
            .toJavaArray(String[]::new));
  }

  @Test
  void aFasterGeneralChildGetsWhatIsNotReplayed() throws IOException {
    CommandRun run = replay(here(), times(1, 9, 256, 512));

    assertThat(run.status()).as(run.err()).isZero();
    assertThat(run.out()).contains("MEASURED").contains("routing  measured: ");
    assertThat(Files.readString(folder.resolve("steps.jsonl")))
        .contains("the other child is right, too, and slower here; measured: ")
        .contains("\"code\":\"MEASURED\"");
  }

  @Test
  void aFasterFastChildGetsWhatItGotAnyway() throws IOException {
    CommandRun run = replay(here(), times(9, 1, 256, 512));

    assertThat(run.status()).as(run.err()).isZero();
    assertThat(run.out()).contains("LOWERED").doesNotContain("MEASURED");
  }

  @Test
  void layersThatWereNotMeasuredAreNamed() throws IOException {
    CommandRun run = replay(here(), times(1, 9, 256));

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("nothing on FLEX_ATTENTION and CPU_ATTN in layers full");
  }

  @Test
  void aForeignTableIsRefusedAndSaysWhy() throws IOException {
    Provenance here = here();
    CommandRun run =
        replay(
            new Provenance(
                here.machine(),
                "cpu another",
                here.kernels(),
                here.java(),
                here.version(),
                here.commit(),
                here.time(),
                here.command()),
            times(1, 9, 256, 512));

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("is not used: device: measured on cpu another, here is cpu ");
  }

  @ParameterizedTest
  @CsvSource({
    "--backend=FLEX_CPU_ATTN, --backend FLEX_CPU_ATTN",
    "--backend=FLEX_ATTENTION+CPU_ATTN, --backend FLEX_ATTENTION+CPU_ATTN",
    "--no-split, --split or --lowering",
    "--split, --split or --lowering",
    "--no-lowering, --split or --lowering",
  })
  void aChoiceThatIsNamedIsNotOverruled(String option, String said) throws IOException {
    CommandRun run = replay(here(), times(1, 9, 256, 512), option);

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("--calibration beside " + said);
  }

  @Test
  void whatIsNoTableIsRefused() throws IOException {
    Path table = folder.resolve("calibration.json");
    Files.writeString(table, "{}");

    assertThat(SmallReplay.in(folder, "--calibration=" + table).status()).isEqualTo(2);
    assertThat(SmallReplay.in(folder, "--calibration=" + folder.resolve("none")).status())
        .isEqualTo(2);
  }
}

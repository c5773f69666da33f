package bifocal.cli.doctor;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.Main;
import bifocal.cli.command.CommandRun;
import bifocal.cli.command.CommandRunner;
import bifocal.composite.guice.PlatformModule;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.host.Finding;
import bifocal.core.host.Finding.Status;
import bifocal.core.host.HostCheck;
import bifocal.core.host.HostFiles;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.google.inject.AbstractModule;
import io.vavr.collection.Seq;
import io.vavr.collection.TreeMap;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import picocli.CommandLine;

class DoctorCommandTest {
  private static final Finding GOOD = Finding.good("threads", "7 threads: a quota");
  private static final Finding ABSENT = Finding.absent("cuda", "no driver", "install it");
  private static final Finding FAILED = Finding.failed("kernels", "not here", "unset it");

  @TempDir private Path root;

  @Test
  void findingsAreListedWithTheirRemedies() {
    CommandRun run = doctor(Vector.of(GOOD, ABSENT));

    assertThat(run.status()).isZero();
    assertThat(run.out())
        .containsSubsequence(
            "good     threads        7 threads: a quota",
            "absent   cuda           no driver",
            "-> install it");
  }

  @Test
  void whatWasAskedForAndIsNotThereFailsTheCommand() {
    assertThat(doctor(Vector.of(GOOD, FAILED)).status()).isEqualTo(1);
  }

  @Test
  void findingsAreReadByPrograms() throws IOException {
    JsonNode json =
        new ObjectMapper().readTree(doctor(Vector.of(GOOD, ABSENT), "--format", "json").out());

    assertThat(json.at("/healthy").booleanValue()).isTrue();
    assertThat(json.at("/findings/0/remedy").isNull()).isTrue();
    assertThat(json.at("/findings/1/topic").textValue()).isEqualTo("cuda");
    assertThat(json.at("/findings/1/status").textValue()).isEqualTo("absent");
    assertThat(json.at("/findings/1/seen").textValue()).isEqualTo("no driver");
    assertThat(json.at("/findings/1/remedy").textValue()).isEqualTo("install it");
  }

  @Test
  void theHostUnderneathIsLookedAt() {
    CommandRun run = CommandRun.of("", console -> Main.run(console, "doctor"));

    assertThat(run.status()).isZero();
    assertThat(run.out()).contains("JDK", System.getProperty("java.home"), "memory");
  }

  @Test
  void memoryAndItsLimitAreRead() throws IOException {
    write("proc/meminfo", "MemTotal:  16777216 kB\nMemFree: 1 kB\nMemAvailable:  8388608 kB\n");
    write("proc/self/cgroup", "0::/\n");
    write("sys/fs/cgroup/memory.max", "4294967296\n");

    assertThat(memory().seen())
        .isEqualTo(
            "16.0 GiB in all, 8.0 GiB available, cgroup limit 4.0 GiB, Java heap up to 2.0 GiB");
    assertThat(memory().status()).isEqualTo(Status.GOOD);
  }

  @Test
  void littleMemoryIsNoted() throws IOException {
    write("proc/meminfo", "MemAvailable:  1048576 kB\n");

    assertThat(memory().status()).isEqualTo(Status.LIMITED);
    assertThat(memory().remedy()).isNotEmpty();
  }

  @Test
  void aSystemThatSaysNothingOfItsMemoryStillHasAHeap() {
    assertThat(memory()).isEqualTo(Finding.good("memory", "Java heap up to 2.0 GiB"));
  }

  @Test
  void platformsSayWhatTheyFindAndWhichAreNotThere() {
    Seq<Finding> findings =
        new PlatformsCheck(
                () ->
                    new PlatformModules(
                        Vector.of(
                            platform(Platform.CPU, Option.some(() -> Vector.of(GOOD))),
                            platform(Platform.XPU, Option.none())),
                        TreeMap.of(Platform.CUDA, "x is not on the class path; add that artifact")))
            .findings();

    assertThat(findings.map(Finding::topic)).containsExactly("threads", "xpu", "cuda");
    assertThat(findings.get(1).seen()).startsWith("described, not run");
    assertThat(findings.get(2).remedy()).containsExactly("add that artifact");
  }

  @Test
  void aPlatformThatIsRefusedIsAFinding() {
    Seq<Finding> findings =
        new PlatformsCheck(
                () -> {
                  throw BifocalException.of(ErrorCode.SPI_MISMATCH, "x.jar", 0, 1)
                      .withRemedy("take a newer one");
                })
            .findings();

    assertThat(findings)
        .containsExactly(Finding.failed("platforms", "x.jar: 0, wanted 1", "take a newer one"));
  }

  private Finding memory() {
    return new MemoryCheck(new HostFiles(root), 2L << 30).findings().head();
  }

  private static CommandRun doctor(Seq<Finding> findings, String... options) {
    HostCheck check = () -> findings;
    return CommandRun.of(
        "",
        console ->
            new CommandRunner(
                    new CommandLine(new DoctorCommand(console, () -> Vector.of(check))), console)
                .run(Vector.of(options).prepend("--debug").toJavaArray(String[]::new)));
  }

  private static PlatformModule platform(Platform platform, Option<HostCheck> check) {
    return new FakePlatform(platform, check);
  }

  private void write(String file, String text) throws IOException {
    Files.createDirectories(root.resolve(file).getParent());
    Files.writeString(root.resolve(file), text);
  }

  private static final class FakePlatform extends AbstractModule implements PlatformModule {
    private final Platform platform;
    private final Option<HostCheck> check;

    private FakePlatform(Platform platform, Option<HostCheck> check) {
      this.platform = platform;
      this.check = check;
    }

    @Override
    public Platform platform() {
      return platform;
    }

    @Override
    public Option<HostCheck> hostCheck() {
      return check;
    }
  }
}

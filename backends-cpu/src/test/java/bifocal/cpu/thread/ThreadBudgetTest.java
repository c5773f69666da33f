package bifocal.cpu.thread;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.host.HostFiles;
import bifocal.cpu.attention.CpuRuntime;
import io.vavr.control.Option;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class ThreadBudgetTest {
  @Test
  void aQuotaIsRoundedDownAndSaysSo() {
    ThreadBudget budget = ThreadBudget.of(Option.none(), 8, Option.some(7.65));

    assertThat(budget.threads()).isEqualTo(7);
    assertThat(budget)
        .hasToString("7 threads: cgroup quota of 7.65 CPUs, rounded down; affinity allows 8");
  }

  @Test
  void aQuotaBelowOneCpuLeavesOneThread() {
    assertThat(ThreadBudget.of(Option.none(), 8, Option.some(0.5)).threads()).isEqualTo(1);
  }

  @Test
  void affinityDecidesBelowTheQuota() {
    assertThat(ThreadBudget.of(Option.none(), 3, Option.some(7.65)).threads()).isEqualTo(3);
    assertThat(ThreadBudget.of(Option.none(), 3, Option.none()).threads()).isEqualTo(3);
  }

  @Test
  void thePropertyStandsInForTheQuota() {
    assertThat(ThreadBudget.of(Option.some("5"), 8, Option.some(1.0)))
        .hasToString("5 threads: set by -Dbifocal.cpu.threads");
    assertThat(ThreadBudget.of(Option.some("1"), 8, Option.none()).threads()).isEqualTo(1);
  }

  @Test
  void thereAreNeverMoreThreadsThanCpusAndTheReasonSaysWhatWasAskedFor() {
    assertThat(ThreadBudget.of(Option.some("5"), 2, Option.some(1.0)))
        .hasToString(
            "2 threads: CPUs of the affinity mask, though -Dbifocal.cpu.threads asks for 5");
  }

  @Test
  void aPropertyThatIsNoNumberIsRefused() {
    for (String value : new String[] {"0", "-1", "many", ""}) {
      assertThatThrownBy(() -> ThreadBudget.of(Option.some(value), 2, Option.none()))
          .as(value)
          .isInstanceOfSatisfying(
              BifocalException.class,
              refusal -> assertThat(refusal.code()).isEqualTo(ErrorCode.INVALID_OPTION));
    }
  }

  @Test
  void cpuListsAreCounted() {
    assertThat(ThreadBudget.cpusOf("0")).isEqualTo(1);
    assertThat(ThreadBudget.cpusOf(" 0-3,8, 10-11\n")).isEqualTo(7);
  }

  @Test
  void theHostsFilesAreRead(@TempDir Path root) throws IOException {
    write(root, "proc/self/status", "Name:\tjava\nCpus_allowed_list:\t0-3,8-11\n");
    write(root, "proc/self/cgroup", "0::/job\n");
    write(root, "sys/fs/cgroup/job/cpu.max", "765000 100000\n");

    assertThat(ThreadBudget.of(Option.none(), new HostFiles(root)))
        .hasToString("7 threads: cgroup quota of 7.65 CPUs, rounded down; affinity allows 8");
  }

  @Test
  void groupsOfTheFirstVersionAreReadToo(@TempDir Path root) throws IOException {
    write(root, "proc/self/status", "Cpus_allowed_list:\t0-7\n");
    write(root, "proc/self/cgroup", "4:cpu,cpuacct:/job\n");
    write(root, "sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "250000\n");
    write(root, "sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");

    assertThat(ThreadBudget.of(Option.none(), new HostFiles(root)).threads()).isEqualTo(2);
  }

  @Test
  void aSystemThatSaysNothingHasTheCpusThatTheJvmCounts(@TempDir Path empty) {
    assertThat(ThreadBudget.of(Option.none(), new HostFiles(empty)).threads())
        .isEqualTo(Runtime.getRuntime().availableProcessors());
  }

  @Test
  void twoEnginesShareOneBudget() {
    assertThat(CpuRuntime.ofThisJvm().threads()).isSameAs(CpuRuntime.ofThisJvm().threads());
    assertThat(CpuThreads.shared().threads()).isEqualTo(ThreadBudget.ofThisProcess().threads());
  }

  @Test
  void thisProcessHasABudget() {
    assertThat(ThreadBudget.ofThisProcess().threads()).isPositive();
    assertThat(ThreadBudget.ofThisProcess().why()).isNotBlank();
  }

  private static void write(Path root, String file, String text) throws IOException {
    Files.createDirectories(root.resolve(file).getParent());
    Files.writeString(root.resolve(file), text);
  }
}

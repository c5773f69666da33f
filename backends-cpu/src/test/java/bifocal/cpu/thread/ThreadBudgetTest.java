package bifocal.cpu.thread;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
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
  void thePropertyOutranksBoth() {
    assertThat(ThreadBudget.of(Option.some("5"), 2, Option.some(1.0)).threads()).isEqualTo(5);
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
  void theTightestGroupUpwardsCounts(@TempDir Path root) throws IOException {
    Path inner = Files.createDirectories(root.resolve("outer/inner"));
    Files.writeString(root.resolve("cpu.max"), "max 100000\n");
    Files.writeString(root.resolve("outer/cpu.max"), "765000 100000\n");
    Files.writeString(inner.resolve("cpu.max"), "900000 100000\n");

    assertThat(ThreadBudget.quota(root, "0::/outer/inner\n").get()).isEqualTo(7.65);
    assertThat(ThreadBudget.quota(root, "0::/\n").isEmpty()).isTrue();
    assertThat(ThreadBudget.quota(root, "").isEmpty()).isTrue();
  }

  @Test
  void groupsOfTheFirstVersionCount(@TempDir Path root) throws IOException {
    Path group = Files.createDirectories(root.resolve("cpu/job"));
    Files.writeString(group.resolve("cpu.cfs_quota_us"), "250000\n");
    Files.writeString(group.resolve("cpu.cfs_period_us"), "100000\n");
    Files.writeString(root.resolve("cpu/cpu.cfs_quota_us"), "-1\n");

    assertThat(ThreadBudget.quota(root, "4:cpu,cpuacct:/job\n3:memory:/job\n").get())
        .isEqualTo(2.5);
  }

  @Test
  void thisProcessHasABudget() {
    assertThat(ThreadBudget.ofThisProcess().threads()).isPositive();
    assertThat(ThreadBudget.ofThisProcess().why()).isNotBlank();
  }
}

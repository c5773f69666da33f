package bifocal.core.host;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ControlGroupsTest {
  @TempDir private Path root;

  @Test
  void theTightestLimitUpwardsCounts() throws IOException {
    write("proc/self/cgroup", "0::/outer/inner\n");
    write("sys/fs/cgroup/cpu.max", "max 100000\n");
    write("sys/fs/cgroup/outer/cpu.max", "765000 100000\n");
    write("sys/fs/cgroup/outer/inner/cpu.max", "900000 100000\n");
    write("sys/fs/cgroup/outer/memory.max", "2147483648\n");
    write("sys/fs/cgroup/outer/inner/memory.max", "max\n");

    assertThat(groups().cpuQuota()).containsExactly(7.65);
    assertThat(groups().memoryLimit()).containsExactly(1L << 31);
  }

  @Test
  void aLimitOfASiblingIsNone() throws IOException {
    write("proc/self/cgroup", "0::/other\n");
    write("sys/fs/cgroup/outer/cpu.max", "765000 100000\n");
    write("sys/fs/cgroup/outer/memory.max", "1024\n");

    assertThat(groups().cpuQuota()).isEmpty();
    assertThat(groups().memoryLimit()).isEmpty();
  }

  @Test
  void groupsOfTheFirstVersionCount() throws IOException {
    write("proc/self/cgroup", "4:cpu,cpuacct:/job\n3:memory:/job\n");
    write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "250000\n");
    write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "4096\n");

    assertThat(groups().cpuQuota()).containsExactly(2.5);
    assertThat(groups().memoryLimit()).containsExactly(4096L);
  }

  @Test
  void controllersMountedUnderTheirJointNameCount() throws IOException {
    write("proc/self/cgroup", "4:cpu,cpuacct:/\n");
    write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
    write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");

    assertThat(groups().cpuQuota()).containsExactly(1.5);
  }

  @Test
  void aSystemWithoutGroupsSetsNoLimit() {
    assertThat(groups().cpuQuota()).isEmpty();
    assertThat(groups().memoryLimit()).isEmpty();
  }

  @Test
  void whatIsNotALimitIsPassedOver() throws IOException {
    write("proc/self/cgroup", "rubbish\n0::/\n");
    write("sys/fs/cgroup/cpu.max", "many 100000\n");
    write("sys/fs/cgroup/memory.max", "some\n");

    assertThat(groups().cpuQuota()).isEmpty();
    assertThat(groups().memoryLimit()).isEmpty();
  }

  private ControlGroups groups() {
    return new ControlGroups(new HostFiles(root));
  }

  private void write(String file, String text) throws IOException {
    Files.createDirectories(root.resolve(file).getParent());
    Files.writeString(root.resolve(file), text);
  }
}

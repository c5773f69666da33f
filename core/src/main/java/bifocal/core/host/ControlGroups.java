package bifocal.core.host;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Try;
import java.nio.file.Path;
import java.util.function.Function;

/**
 * The limits that control groups set to this process, whichever of their two versions is mounted. A
 * group's limit also holds for the groups inside it, so the tightest of a group and of those it
 * lies in counts.
 *
 * @param files the files of the host
 */
public record ControlGroups(HostFiles files) {
  private static final String MOUNT = "/sys/fs/cgroup";
  private static final String MEMBERSHIP = "/proc/self/cgroup";

  /** Above this, a memory limit of the first version means that there is none. */
  private static final long UNLIMITED = Long.MAX_VALUE / 2;

  /** CPU time per wall time, absent without a limit. */
  public Option<Double> cpuQuota() {
    return tightest("cpu", ControlGroups::unifiedQuota, ControlGroups::firstVersionQuota);
  }

  /** Most bytes of memory, absent without a limit. */
  public Option<Long> memoryLimit() {
    return tightest(
        "memory",
        group -> bytes(group.resolve("memory.max")),
        group -> bytes(group.resolve("memory.limit_in_bytes")));
  }

  private <T extends Comparable<T>> Option<T> tightest(
      String controller, Function<Path, Option<T>> unified, Function<Path, Option<T>> first) {
    Seq<T> limits = Vector.empty();
    for (String line : files.lines(MEMBERSHIP)) {
      // id:controllers:path, without controllers in version 2
      String[] parts = line.split(":", 3);
      if (parts.length < 3) {
        continue;
      }
      if (parts[1].isEmpty()) {
        limits = limits.appendAll(upwards(files.path(MOUNT), parts[2], unified));
      } else if (Vector.of(parts[1].split(",")).contains(controller)) {
        for (String mount : Vector.of(controller, parts[1]).distinct()) {
          limits = limits.appendAll(upwards(files.path(MOUNT + "/" + mount), parts[2], first));
        }
      }
    }
    return limits.min();
  }

  /** The limits of a group and of those it lies in. */
  private static <T> Seq<T> upwards(Path root, String group, Function<Path, Option<T>> limit) {
    Seq<T> limits = limit.apply(root).toVector();
    Path folder = root;
    for (String name : group.split("/")) {
      if (!name.isEmpty()) {
        folder = folder.resolve(name);
        limits = limits.appendAll(limit.apply(folder));
      }
    }
    return limits;
  }

  private static Option<Double> unifiedQuota(Path group) {
    return HostFiles.text(group.resolve("cpu.max"))
        .map(line -> line.split("\\s+"))
        .filter(parts -> parts.length == 2 && !parts[0].equals("max"))
        .flatMap(parts -> ratio(parts[0], parts[1]));
  }

  private static Option<Double> firstVersionQuota(Path group) {
    return HostFiles.text(group.resolve("cpu.cfs_quota_us"))
        .filter(quota -> !quota.startsWith("-"))
        .flatMap(
            quota ->
                HostFiles.text(group.resolve("cpu.cfs_period_us"))
                    .flatMap(period -> ratio(quota, period)));
  }

  private static Option<Double> ratio(String quota, String period) {
    return Try.of(() -> Double.parseDouble(quota) / Double.parseDouble(period))
        .toOption()
        .filter(ratio -> Double.isFinite(ratio) && ratio > 0);
  }

  private static Option<Long> bytes(Path file) {
    return HostFiles.text(file)
        .flatMap(text -> Try.of(() -> Long.parseLong(text)).toOption())
        .filter(limit -> limit > 0 && limit < UNLIMITED);
  }
}

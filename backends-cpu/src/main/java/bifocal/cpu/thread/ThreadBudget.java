package bifocal.cpu.thread;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.host.ControlGroups;
import bifocal.core.host.HostFiles;
import io.vavr.control.Option;
import io.vavr.control.Try;
import java.util.Locale;

/**
 * How many threads compute, and why that many.
 *
 * @param threads at least 1, the calling thread included
 * @param why one line for reports
 */
public record ThreadBudget(int threads, String why) {
  /** System property that sets the number of threads. */
  public static final String PROPERTY = "bifocal.cpu.threads";

  private static final String STATUS = "/proc/self/status";
  private static final String AFFINITY = "Cpus_allowed_list:";

  /**
   * What this process may use: the CPUs of its affinity mask, the quota of its control groups, or
   * less if the property says so.
   *
   * @throws BifocalException {@code INVALID_OPTION} for a property that is no positive number
   */
  public static ThreadBudget ofThisProcess() {
    return of(Option.of(System.getProperty(PROPERTY)), HostFiles.ofThisHost());
  }

  /**
   * What the files of a host allow.
   *
   * @param property what a user asked for
   * @throws BifocalException {@code INVALID_OPTION} for a property that is no positive number
   */
  public static ThreadBudget of(Option<String> property, HostFiles files) {
    return of(property, affinity(files), new ControlGroups(files).cpuQuota());
  }

  /**
   * The budget for some limits. A quota is rounded down: a thread more than the quota feeds would
   * be stopped for a part of each period, and everybody would wait for it. There are never more
   * threads than CPUs to run them on.
   *
   * @param property what a user asked for, in place of the quota
   * @param cpus CPUs this process may be scheduled on
   * @param quota CPU time per wall time
   * @throws BifocalException {@code INVALID_OPTION} for a property that is no positive number
   */
  public static ThreadBudget of(Option<String> property, int cpus, Option<Double> quota) {
    int allowed = Math.max(1, cpus);
    if (property.isDefined()) {
      return asked(property.get(), allowed);
    }
    if (quota.isDefined() && quota.get() < allowed) {
      return new ThreadBudget(
          Math.max(1, (int) Math.floor(quota.get())),
          String.format(
              Locale.ROOT,
              "cgroup quota of %.2f CPUs, rounded down; affinity allows %d",
              quota.get(),
              allowed));
    }
    return new ThreadBudget(
        allowed,
        "CPUs of the affinity mask"
            + quota.map(q -> String.format(Locale.ROOT, "; cgroup quota %.2f", q)).getOrElse(""));
  }

  private static ThreadBudget asked(String property, int allowed) {
    int wanted = Try.of(() -> Integer.parseInt(property.strip())).getOrElse(0);
    if (wanted < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION, PROPERTY, property, "a number of at least 1");
    }
    return wanted > allowed
        ? new ThreadBudget(
            allowed, "CPUs of the affinity mask, though -D" + PROPERTY + " asks for " + wanted)
        : new ThreadBudget(wanted, "set by -D" + PROPERTY);
  }

  /** CPUs in a list such as {@code 0-3,8}. */
  static int cpusOf(String list) {
    int cpus = 0;
    for (String range : list.strip().split(",")) {
      String[] bounds = range.strip().split("-");
      int first = Integer.parseInt(bounds[0]);
      cpus += bounds.length == 1 ? 1 : Integer.parseInt(bounds[1]) - first + 1;
    }
    return cpus;
  }

  /** CPUs of the affinity mask; what the JVM counts where the system does not say. */
  private static int affinity(HostFiles files) {
    return files
        .lines(STATUS)
        .find(line -> line.startsWith(AFFINITY))
        .flatMap(line -> Try.of(() -> cpusOf(line.substring(AFFINITY.length()))).toOption())
        .getOrElse(() -> Runtime.getRuntime().availableProcessors());
  }

  @Override
  public String toString() {
    return threads + (threads == 1 ? " thread: " : " threads: ") + why;
  }
}

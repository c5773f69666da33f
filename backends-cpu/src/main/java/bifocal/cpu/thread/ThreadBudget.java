package bifocal.cpu.thread;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Try;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.function.Function;

/**
 * How many threads compute, and why that many.
 *
 * @param threads at least 1, the calling thread included
 * @param why one line for reports
 */
public record ThreadBudget(int threads, String why) {
  /** System property that sets the number of threads. */
  public static final String PROPERTY = "bifocal.cpu.threads";

  /**
   * What this process may use: the property, else CPUs of its affinity mask and its cgroup quota.
   */
  public static ThreadBudget ofThisProcess() {
    return of(
        Option.of(System.getProperty(PROPERTY)),
        affinity(),
        quota(Path.of("/sys/fs/cgroup"), read(Path.of("/proc/self/cgroup")).getOrElse("")));
  }

  /**
   * The budget for some limits. A quota is rounded down: a thread more than the quota feeds would
   * be stopped for a part of each period, and everybody would wait for it.
   *
   * @param property what a user asked for
   * @param cpus CPUs this process may be scheduled on
   * @param quota CPU time per wall time
   * @throws BifocalException {@code INVALID_OPTION} for a property that is no positive number
   */
  public static ThreadBudget of(Option<String> property, int cpus, Option<Double> quota) {
    if (property.isDefined()) {
      int asked = Try.of(() -> Integer.parseInt(property.get().strip())).getOrElse(0);
      if (asked < 1) {
        throw BifocalException.of(
            ErrorCode.INVALID_OPTION, PROPERTY, property.get(), "a number of at least 1");
      }
      return new ThreadBudget(asked, "set by -D" + PROPERTY);
    }
    if (quota.isDefined() && quota.get() < cpus) {
      return new ThreadBudget(
          Math.max(1, (int) Math.floor(quota.get())),
          String.format(
              Locale.ROOT,
              "cgroup quota of %.2f CPUs, rounded down; affinity allows %d",
              quota.get(),
              cpus));
    }
    return new ThreadBudget(
        Math.max(1, cpus),
        "CPUs of the affinity mask"
            + quota.map(q -> String.format(Locale.ROOT, "; cgroup quota %.2f", q)).getOrElse(""));
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

  /**
   * The tightest CPU quota of a process's groups, version 2 or 1.
   *
   * @param root where the groups are mounted
   * @param membership content of {@code /proc/self/cgroup}: lines {@code id:controllers:path}
   */
  static Option<Double> quota(Path root, String membership) {
    Option<Double> tightest = Option.none();
    for (String line : membership.lines().toList()) {
      String[] parts = line.split(":", 3);
      if (parts.length == 3 && parts[1].isEmpty()) {
        tightest = tighter(tightest, upwards(root, parts[2], ThreadBudget::unified));
      } else if (parts.length == 3 && Vector.of(parts[1].split(",")).contains("cpu")) {
        tightest =
            tighter(tightest, upwards(root.resolve("cpu"), parts[2], ThreadBudget::firstVersion));
      }
    }
    return tightest;
  }

  /** The tightest quota of a group and of those it lies in. */
  private static Option<Double> upwards(
      Path root, String group, Function<Path, Option<Double>> quota) {
    Option<Double> tightest = quota.apply(root);
    Path folder = root;
    for (Path name : Path.of(group)) {
      folder = folder.resolve(name.toString());
      tightest = tighter(tightest, quota.apply(folder));
    }
    return tightest;
  }

  private static Option<Double> tighter(Option<Double> a, Option<Double> b) {
    return Vector.of(a, b).flatMap(option -> option).min();
  }

  private static Option<Double> unified(Path group) {
    return read(group.resolve("cpu.max"))
        .map(line -> line.split("\\s+"))
        .filter(parts -> parts.length == 2 && !parts[0].equals("max"))
        .flatMap(parts -> ratio(parts[0], parts[1]));
  }

  private static Option<Double> firstVersion(Path group) {
    return read(group.resolve("cpu.cfs_quota_us"))
        .filter(quota -> !quota.startsWith("-"))
        .flatMap(
            quota ->
                read(group.resolve("cpu.cfs_period_us")).flatMap(period -> ratio(quota, period)));
  }

  private static int affinity() {
    return read(Path.of("/proc/self/status"))
        .flatMap(
            status ->
                Option.ofOptional(
                    status
                        .lines()
                        .filter(line -> line.startsWith("Cpus_allowed_list:"))
                        .findFirst()))
        .flatMap(line -> Try.of(() -> cpusOf(line.substring(line.indexOf(':') + 1))).toOption())
        .getOrElse(() -> Runtime.getRuntime().availableProcessors());
  }

  private static Option<Double> ratio(String quota, String period) {
    return Try.of(() -> Double.parseDouble(quota) / Double.parseDouble(period))
        .toOption()
        .filter(ratio -> Double.isFinite(ratio) && ratio > 0);
  }

  private static Option<String> read(Path file) {
    return Try.of(() -> Files.readString(file).strip()).toOption();
  }

  @Override
  public String toString() {
    return threads + (threads == 1 ? " thread: " : " threads: ") + why;
  }
}

package bifocal.cli.doctor;

import bifocal.core.host.ControlGroups;
import bifocal.core.host.Finding;
import bifocal.core.host.HostCheck;
import bifocal.core.host.HostFiles;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Try;
import java.util.Locale;

/** How much memory there is, for caches and for the Java heap. */
record MemoryCheck(HostFiles files, long heapBytes) implements HostCheck {
  private static final double GIB = 1L << 30;

  /** Below this, a replay of the shipped trace has no room for its cache. */
  private static final long ENOUGH = 3L << 30;

  @Override
  public Seq<Finding> findings() {
    Option<Long> total = kibibytes("MemTotal:");
    Option<Long> available = kibibytes("MemAvailable:");
    Option<Long> limit = new ControlGroups(files).memoryLimit();
    String seen =
        Vector.of(
                total.map(bytes -> gib(bytes) + " in all"),
                available.map(bytes -> gib(bytes) + " available"),
                limit.map(bytes -> "cgroup limit " + gib(bytes)),
                Option.some("Java heap up to " + gib(heapBytes)))
            .flatMap(part -> part)
            .mkString(", ");
    Option<Long> least = Vector.of(available, limit).flatMap(bytes -> bytes).min();
    return Vector.of(
        least.exists(bytes -> bytes < ENOUGH)
            ? Finding.limited(
                "memory", seen, "free memory, or replay less: --requests 4 --layers 1")
            : Finding.good("memory", seen));
  }

  private Option<Long> kibibytes(String name) {
    return files
        .lines("/proc/meminfo")
        .find(line -> line.startsWith(name))
        .map(line -> line.substring(name.length()).replace("kB", "").strip())
        .flatMap(number -> Try.of(() -> Long.parseLong(number) << 10).toOption());
  }

  private static String gib(long bytes) {
    return String.format(Locale.ROOT, "%.1f GiB", bytes / GIB);
  }
}

package bifocal.benchmarks.cpu;

import io.vavr.collection.Iterator;
import io.vavr.control.Option;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.time.temporal.ChronoUnit;

/**
 * Where and when something was measured.
 *
 * @param processor its name, absent where the system does not tell
 * @param load average number of processes that wanted to run in the last minute; negative where the
 *     system does not tell
 */
record Host(
    Option<String> processor,
    int processors,
    String system,
    String java,
    String time,
    double load) {
  private static final Path LINUX_PROCESSORS = Path.of("/proc/cpuinfo");
  private static final String LINUX_NAME = "model name";

  static Host now() {
    return new Host(
        processorName(),
        available(),
        System.getProperty("os.name") + " " + System.getProperty("os.version"),
        System.getProperty("java.vm.name") + " " + Runtime.version(),
        Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
        ManagementFactory.getOperatingSystemMXBean().getSystemLoadAverage());
  }

  static int available() {
    return Runtime.getRuntime().availableProcessors();
  }

  private static Option<String> processorName() {
    try {
      return Iterator.ofAll(Files.readAllLines(LINUX_PROCESSORS))
          .find(line -> line.startsWith(LINUX_NAME))
          .map(line -> line.substring(line.indexOf(':') + 1).strip());
    } catch (IOException e) {
      return Option.none();
    }
  }
}

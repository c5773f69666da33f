package bifocal.cli.replay;

import io.vavr.collection.Iterator;
import io.vavr.control.Option;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Where a replay ran.
 *
 * @param processor the processor's name, absent where the system does not tell
 * @param processors hardware threads that this process may use
 * @param system name, version and architecture of the operating system
 * @param java vendor and version of the JVM
 * @param memoryBytes most bytes of the Java heap
 */
record Machine(
    Option<String> processor, int processors, String system, String java, long memoryBytes) {
  private static final Path LINUX_PROCESSORS = Path.of("/proc/cpuinfo");
  private static final String LINUX_NAME = "model name";

  /** This one. */
  static Machine present() {
    Runtime runtime = Runtime.getRuntime();
    return new Machine(
        processorName(),
        runtime.availableProcessors(),
        property("os.name") + " " + property("os.version") + ", " + property("os.arch"),
        property("java.vm.name") + " " + Runtime.version() + ", " + property("java.vendor"),
        runtime.maxMemory());
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

  private static String property(String name) {
    return System.getProperty(name, "unknown");
  }
}

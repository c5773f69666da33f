package bifocal.cpu.host;

import bifocal.core.error.BifocalException;
import bifocal.core.host.Finding;
import bifocal.core.host.HostCheck;
import bifocal.core.host.HostFiles;
import bifocal.cpu.attention.KernelChoice;
import bifocal.cpu.ffi.NativeKernels;
import bifocal.cpu.select.HostProcessor;
import bifocal.cpu.thread.ThreadBudget;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.function.Supplier;

/** Processor, threads, kernels, and what would build faster ones. */
public final class CpuHostCheck implements HostCheck {
  private static final String BUILD = "remove cli/target and run ./bifocal, which builds them";
  private static final Seq<String> TOOLS = Vector.of("make", "cc");
  private static final String INSTALL = "install make and gcc; then ";

  private final HostFiles files;
  private final Option<String> threads;
  private final Kernels kernels;
  private final Tools tools;
  private final String system;

  /** Kernels that may be missing, in which case asking for them is refused. */
  record Kernels(Supplier<KernelChoice> chosen, Supplier<String> inC, Supplier<String> inVectors) {}

  CpuHostCheck(
      HostFiles files, Option<String> threads, Kernels kernels, Tools tools, String system) {
    this.files = files;
    this.threads = threads;
    this.kernels = kernels;
    this.tools = tools;
    this.system = system;
  }

  /** The check of this host. */
  public static CpuHostCheck ofThisHost() {
    return new CpuHostCheck(
        HostFiles.ofThisHost(),
        Option.of(System.getProperty(ThreadBudget.PROPERTY)),
        new Kernels(
            KernelChoice::ofThisJvm,
            () -> describe(KernelChoice.nativeKernels()),
            () -> KernelChoice.vector().name()),
        Tools.ofThisHost(),
        System.getProperty("os.name", ""));
  }

  @Override
  public Seq<Finding> findings() {
    return Vector.of(processor(), threads(), kernels(), inC(), inVectors(), compiler());
  }

  @Override
  public Seq<Finding> conditions() {
    return Vector.of(threads(), kernels());
  }

  private Finding processor() {
    String name =
        files
            .lines("/proc/cpuinfo")
            .find(line -> line.startsWith("model name"))
            .map(line -> line.substring(line.indexOf(':') + 1).strip() + ", ")
            .getOrElse("");
    return Finding.good("processor", name + HostProcessor.isa(files).label());
  }

  private Finding threads() {
    try {
      return Finding.good("threads", ThreadBudget.of(threads, files).toString());
    } catch (BifocalException refused) {
      return Finding.failed("threads", without(refused), "unset -D" + ThreadBudget.PROPERTY);
    }
  }

  private Finding kernels() {
    try {
      KernelChoice chosen = kernels.chosen().get();
      return Finding.good("kernels", "the CPU backends run on " + chosen.kernels().name());
    } catch (BifocalException refused) {
      return Finding.failed(
          "kernels", without(refused), remedy(refused, "unset -D" + KernelChoice.PROPERTY));
    }
  }

  private Finding inC() {
    try {
      return Finding.good("C kernels", kernels.inC().get());
    } catch (BifocalException missing) {
      if (system.startsWith("Windows")) {
        return Finding.absent(
            "C kernels", "none for " + system, "the Java kernels serve; C ones are built on Unix");
      }
      return Finding.limited(
          "C kernels",
          without(missing),
          toolsMissing().isEmpty() ? remedy(missing, BUILD) : INSTALL + BUILD);
    }
  }

  private Finding inVectors() {
    try {
      return Finding.good("Vector API", kernels.inVectors().get());
    } catch (BifocalException missing) {
      return Finding.absent(
          "Vector API",
          "module jdk.incubator.vector is not loaded",
          "run ./bifocal, or start the JVM with --add-modules jdk.incubator.vector");
    }
  }

  private Finding compiler() {
    Seq<String> missing = toolsMissing();
    return missing.isEmpty()
        ? Finding.good("compiler", TOOLS.flatMap(tools::version).mkString(", "))
        : Finding.absent(
            "compiler", "no " + missing.mkString(" and no ") + " on the path", INSTALL + BUILD);
  }

  private Seq<String> toolsMissing() {
    return TOOLS.filter(name -> tools.version(name).isEmpty());
  }

  /** The refusal's text without its advice, which is a finding's remedy. */
  private static String without(BifocalException refused) {
    String text = refused.getMessage();
    return refused.remedy().isEmpty() ? text : text.replace("; " + refused.remedy(), "");
  }

  private static String describe(NativeKernels kernels) {
    return kernels.name() + ", " + kernels.origin();
  }

  private static String remedy(BifocalException refused, String otherwise) {
    return refused.remedy().isEmpty() ? otherwise : refused.remedy();
  }
}

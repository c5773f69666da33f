package bifocal.cli.doctor;

import bifocal.cli.command.Console;
import bifocal.cli.command.ExitStatus;
import bifocal.cli.command.JsonText;
import bifocal.cli.command.OutputOptions;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.host.HostCheck;
import bifocal.core.host.HostFiles;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.concurrent.Callable;
import java.util.function.Supplier;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;

/** Looks at the host, and says what could be better and how. */
@Command(
    name = "doctor",
    description = "Says what is on this host, what is not, and what to do about it.",
    footer = {
      "",
      "good: as good as it gets; limited: works, and could be better; absent: not",
      "here, and not needed; failed: asked for by a setting, and not here (exit 1)."
    })
public final class DoctorCommand implements Callable<Integer> {
  private final Console console;
  private final Supplier<Seq<HostCheck>> checks;

  @Mixin private OutputOptions output = new OutputOptions();

  DoctorCommand(Console console, Supplier<Seq<HostCheck>> checks) {
    this.console = console;
    this.checks = checks;
  }

  /** The command over some streams. */
  public static DoctorCommand over(Console console) {
    return new DoctorCommand(
        console,
        () ->
            Vector.of(
                new JvmCheck(),
                new MemoryCheck(HostFiles.ofThisHost(), Runtime.getRuntime().maxMemory()),
                new PlatformsCheck(PlatformModules::detect)));
  }

  @Override
  public Integer call() {
    DoctorReport report = DoctorReport.of(checks.get().flatMap(HostCheck::findings));
    switch (output.format()) {
      case TEXT -> console.out().print(report.text());
      case JSON -> console.out().println(JsonText.of(report));
    }
    return (report.healthy() ? ExitStatus.DONE : ExitStatus.FAILED).number();
  }
}

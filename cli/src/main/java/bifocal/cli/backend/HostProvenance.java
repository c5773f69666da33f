package bifocal.cli.backend;

import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.bench.Provenance;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.host.HostFiles;
import bifocal.core.select.Selector;
import java.time.Instant;
import java.time.temporal.ChronoUnit;

/** Where, when and by what something is measured in this process. */
public final class HostProvenance {
  private static final String PROCESSORS = "/proc/cpuinfo";
  private static final String NAME = "model name";

  private HostProvenance() {}

  /**
   * The provenance of what is measured on a platform now.
   *
   * @param version of the program
   * @param command that measures
   */
  public static Provenance now(Platform platform, String version, String command) {
    return new Provenance(
        processor(HostFiles.ofThisHost()),
        device(platform),
        RunConditions.of(platform).map(finding -> finding.seen()).mkString("; "),
        Runtime.version().toString(),
        version,
        SourceCommit.ofTheseClasses(),
        Instant.now().truncatedTo(ChronoUnit.SECONDS).toString(),
        command);
  }

  private static String processor(HostFiles files) {
    return files
            .lines(PROCESSORS)
            .find(line -> line.startsWith(NAME))
            .map(line -> line.substring(line.indexOf(':') + 1).strip())
            .getOrElse(Provenance.UNKNOWN)
        + ", "
        + Runtime.getRuntime().availableProcessors()
        + " processors";
  }

  private static String device(Platform platform) {
    return BifocalInjector.create(PlatformModules.detect().present())
        .getInstance(Selector.class)
        .policies()
        .find(policy -> policy.platform() == platform)
        .flatMap(policy -> policy.probe())
        .map(DeviceProfile::label)
        .getOrElse(Provenance.UNKNOWN);
  }
}

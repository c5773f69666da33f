package bifocal.cli.doctor;

import bifocal.composite.guice.PlatformModule;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.error.BifocalException;
import bifocal.core.host.Finding;
import bifocal.core.host.HostCheck;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.function.Supplier;

/** What every platform finds, and which platforms are not on the class path. */
record PlatformsCheck(Supplier<PlatformModules> present) implements HostCheck {
  @Override
  public Seq<Finding> findings() {
    try {
      return findings(present.get());
    } catch (BifocalException refused) {
      return Vector.of(
          Finding.failed(
              "platforms",
              refused.getMessage().replace("; " + refused.remedy(), ""),
              refused.remedy()));
    }
  }

  private static Seq<Finding> findings(PlatformModules platforms) {
    Seq<Finding> found = platforms.present().flatMap(PlatformsCheck::findings);
    Seq<Finding> absent =
        Vector.ofAll(platforms.absent())
            .map(
                reason ->
                    Finding.absent(
                        reason._1().label(),
                        "not on the class path",
                        reason._2().replaceFirst(".*; ", "")));
    return found.appendAll(absent);
  }

  private static Seq<Finding> findings(PlatformModule platform) {
    return platform
        .hostCheck()
        .map(HostCheck::findings)
        .getOrElse(
            () ->
                Vector.of(
                    Finding.absent(
                        platform.platform().label(),
                        "described, not run: nothing of it is looked for",
                        "simulate it: ./bifocal select --platform "
                            + platform.platform().label())));
  }
}

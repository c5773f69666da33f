package bifocal.composite.guice;

import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import com.google.inject.Module;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.TreeMap;
import io.vavr.collection.Vector;
import java.util.Iterator;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;

/**
 * The platforms on the class path.
 *
 * @param present one module per platform that is there, in the order of the platforms
 * @param absent why each of the others is not
 */
public record PlatformModules(Seq<PlatformModule> present, Map<Platform, String> absent) {

  /**
   * Looks for the platforms' modules among the services of the class path.
   *
   * @throws BifocalException {@code SPI_MISMATCH} for a jar that was built against another version
   *     of what it implements; nothing of it has run then
   */
  public static PlatformModules detect() {
    return detect(ServiceLoader.load(PlatformModule.class));
  }

  /**
   * Looks for the platforms' modules in a class loader.
   *
   * @throws BifocalException as {@link #detect()}
   */
  public static PlatformModules detect(ClassLoader loader) {
    return detect(ServiceLoader.load(PlatformModule.class, loader));
  }

  /** The modules present and a host's own behind them, for an injector. */
  public Seq<Module> with(Module... own) {
    return Vector.<Module>ofAll(present).appendAll(Vector.of(own));
  }

  private static PlatformModules detect(ServiceLoader<PlatformModule> services) {
    Seq<PlatformModule> found = Vector.empty();
    Seq<String> broken = Vector.empty();
    Iterator<ServiceLoader.Provider<PlatformModule>> candidates = services.stream().iterator();
    while (true) {
      try {
        if (!candidates.hasNext()) {
          return of(found, broken);
        }
        ServiceLoader.Provider<PlatformModule> candidate = candidates.next();
        PlatformJar.of(candidate.type()).forEach(PlatformJar::requireSpi);
        found = found.append(candidate.get());
      } catch (ServiceConfigurationError | LinkageError e) {
        broken = broken.append(String.valueOf(e.getMessage()));
      }
    }
  }

  private static PlatformModules of(Seq<PlatformModule> found, Seq<String> broken) {
    Seq<PlatformModule> present = found.distinctBy(PlatformModule::platform);
    Map<Platform, String> absent = TreeMap.empty();
    for (Platform platform : Platform.values()) {
      if (!present.exists(module -> module.platform() == platform)) {
        absent = absent.put(platform, reason(platform, broken));
      }
    }
    return new PlatformModules(present.sortBy(PlatformModule::platform), absent);
  }

  private static String reason(Platform platform, Seq<String> broken) {
    String name = "bifocal-backends-" + platform.label();
    return broken
        .find(message -> message.contains("." + platform.label() + "."))
        .map(message -> name + " does not load: " + message)
        .getOrElse(name + " is not on the class path; add that artifact to have the platform");
  }
}

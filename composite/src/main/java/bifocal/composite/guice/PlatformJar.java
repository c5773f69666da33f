package bifocal.composite.guice;

import bifocal.core.backend.SpiVersion;
import io.vavr.control.Option;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.CodeSource;
import java.util.jar.JarFile;
import java.util.jar.Manifest;

/**
 * The jar that a platform's module came from. Classes in a folder, as in a build, have none: they
 * were compiled with what runs them.
 *
 * @param name of the file
 * @param spi the version that its manifest states, absent when it states none
 */
record PlatformJar(String name, Option<String> spi) {
  /** The jar of a class, absent when it did not come from one. */
  static Option<PlatformJar> of(Class<?> type) {
    return Option.of(type.getProtectionDomain().getCodeSource())
        .map(CodeSource::getLocation)
        .filter(location -> location.getProtocol().equals("file"))
        .flatMap(
            location -> {
              try {
                return read(Path.of(location.toURI()));
              } catch (URISyntaxException e) {
                return Option.none();
              }
            });
  }

  private static Option<PlatformJar> read(Path file) {
    if (!Files.isRegularFile(file)) {
      return Option.none();
    }
    String name = String.valueOf(file.getFileName());
    try (JarFile jar = new JarFile(file.toFile())) {
      return Option.some(
          new PlatformJar(
              name,
              Option.<Manifest>of(jar.getManifest())
                  .flatMap(
                      manifest ->
                          Option.of(manifest.getMainAttributes().getValue(SpiVersion.ATTRIBUTE)))));
    } catch (IOException e) {
      return Option.some(new PlatformJar(name, Option.none()));
    }
  }

  /** Requires a version that this build runs. */
  void requireSpi() {
    SpiVersion.require(name, spi);
  }
}

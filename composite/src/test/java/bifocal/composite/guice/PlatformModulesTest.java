package bifocal.composite.guice;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.SpiVersion;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import com.google.inject.AbstractModule;
import java.io.IOException;
import java.io.InputStream;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.zip.ZipEntry;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class PlatformModulesTest {
  @TempDir private Path folder;

  /** A platform of a test. */
  public static final class XpuTestModule extends AbstractModule implements PlatformModule {
    @Override
    public Platform platform() {
      return Platform.XPU;
    }
  }

  /** Another. */
  public static final class CpuTestModule extends AbstractModule implements PlatformModule {
    @Override
    public Platform platform() {
      return Platform.CPU;
    }
  }

  /** A platform none of whose code may run. */
  public static final class ExplodingModule extends AbstractModule implements PlatformModule {
    static {
      explode();
    }

    private static void explode() {
      throw new AssertionError("code of a jar that is to be refused has run");
    }

    @Override
    public Platform platform() {
      return Platform.ROCM;
    }
  }

  private ClassLoader services(String... classes) throws IOException {
    Path services = Files.createDirectories(folder.resolve("META-INF/services"));
    Files.write(services.resolve(PlatformModule.class.getName()), java.util.List.of(classes));
    return new URLClassLoader(new URL[] {url(folder)}, getClass().getClassLoader());
  }

  private static URL url(Path path) throws MalformedURLException {
    return path.toUri().toURL();
  }

  @Test
  void platformsAreFoundInTheirOwnOrder() throws IOException {
    PlatformModules modules =
        PlatformModules.detect(
            services(XpuTestModule.class.getName(), CpuTestModule.class.getName()));

    assertThat(modules.present().map(PlatformModule::platform))
        .containsExactly(Platform.CPU, Platform.XPU);
  }

  @Test
  void whatIsAbsentIsExplainedByTheArtifactToAdd() throws IOException {
    PlatformModules modules =
        PlatformModules.detect(
            services(XpuTestModule.class.getName(), CpuTestModule.class.getName()));

    assertThat(modules.absent().keySet()).containsExactly(Platform.CUDA, Platform.ROCM);
    assertThat(modules.absent().get(Platform.ROCM).get())
        .contains("bifocal-backends-rocm is not on the class path");
  }

  @Test
  void aPlatformThatDoesNotLoadIsExplainedAndTheOthersStay() throws IOException {
    PlatformModules modules =
        PlatformModules.detect(
            services("bifocal.rocm.RocmAttentionModule", CpuTestModule.class.getName()));

    assertThat(modules.present().map(PlatformModule::platform)).containsExactly(Platform.CPU);
    assertThat(modules.absent().get(Platform.ROCM).get())
        .contains("does not load", "bifocal.rocm.RocmAttentionModule");
  }

  @Test
  void aJarOfThisVersionIsTaken() throws IOException {
    PlatformModules modules =
        PlatformModules.detect(jar(XpuTestModule.class, Integer.toString(SpiVersion.CURRENT)));

    assertThat(modules.present().map(module -> module.getClass().getName()))
        .containsExactly(XpuTestModule.class.getName());
    assertThat(modules.present().head().getClass()).isNotEqualTo(XpuTestModule.class);
  }

  @Test
  void aJarThatIsTooOldOrTooNewIsRefusedBeforeItsCodeRuns() throws IOException {
    for (String version : new String[] {"0", Integer.toString(SpiVersion.CURRENT + 1), "one"}) {
      ClassLoader loader = jar(ExplodingModule.class, version);

      assertThatThrownBy(() -> PlatformModules.detect(loader))
          .as(version)
          .isInstanceOfSatisfying(
              BifocalException.class,
              refusal -> {
                assertThat(refusal.code()).isEqualTo(ErrorCode.SPI_MISMATCH);
                assertThat(refusal.getMessage()).contains("platform.jar: " + version);
                assertThat(refusal.remedy()).contains(version.equals("2") ? "too new" : "too old");
              });
    }
  }

  @Test
  void aJarThatStatesNoVersionIsRefused() throws IOException {
    ClassLoader loader = jar(ExplodingModule.class, "");

    assertThatThrownBy(() -> PlatformModules.detect(loader))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("platform.jar: none, wanted 1");
  }

  /** A jar with one module, loaded from there although the test's class path has it too. */
  private ClassLoader jar(Class<?> module, String version) throws IOException {
    Manifest manifest = new Manifest();
    manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
    if (!version.isEmpty()) {
      manifest.getMainAttributes().putValue(SpiVersion.ATTRIBUTE, version);
    }
    Path file = folder.resolve("platform.jar");
    String entry = module.getName().replace('.', '/') + ".class";
    try (JarOutputStream jar = new JarOutputStream(Files.newOutputStream(file), manifest);
        InputStream code = module.getClassLoader().getResourceAsStream(entry)) {
      jar.putNextEntry(new ZipEntry(entry));
      code.transferTo(jar);
      jar.putNextEntry(new ZipEntry("META-INF/services/" + PlatformModule.class.getName()));
      jar.write(module.getName().getBytes(StandardCharsets.UTF_8));
    }
    return new URLClassLoader(new URL[] {url(file)}, hiding(module));
  }

  private ClassLoader hiding(Class<?> hidden) {
    return new ClassLoader(getClass().getClassLoader()) {
      @Override
      protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
        if (name.equals(hidden.getName())) {
          throw new ClassNotFoundException(name);
        }
        return super.loadClass(name, resolve);
      }
    };
  }

  @Test
  void withoutServicesEveryPlatformIsAbsent() throws IOException {
    PlatformModules modules = PlatformModules.detect(services());

    assertThat(modules.present()).isEmpty();
    assertThat(modules.absent().keySet()).containsExactly(Platform.values());
  }
}

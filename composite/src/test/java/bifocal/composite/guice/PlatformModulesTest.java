package bifocal.composite.guice;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.device.Platform;
import com.google.inject.AbstractModule;
import java.io.IOException;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
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
  void withoutServicesEveryPlatformIsAbsent() throws IOException {
    PlatformModules modules = PlatformModules.detect(services());

    assertThat(modules.present()).isEmpty();
    assertThat(modules.absent().keySet()).containsExactly(Platform.values());
  }
}

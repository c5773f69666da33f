package bifocal.cuda.flashinfer;

import bifocal.tvm.TvmModule;
import bifocal.tvm.TvmRuntime;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Objects;
import org.opentest4j.TestAbortedException;

/** Compiles {@code device_module.c}; where there is no C compiler, the test is skipped. */
final class DeviceModule {
  private static final String SOURCE = "device_module.c";

  private DeviceModule() {}

  static TvmModule compiled(Path folder, TvmRuntime runtime) {
    Path source = folder.resolve(SOURCE);
    Path library = folder.resolve("device_module.so");
    try (InputStream in = DeviceModule.class.getResourceAsStream(SOURCE)) {
      Files.copy(Objects.requireNonNull(in), source);
      Process compiler =
          new ProcessBuilder(
                  "cc", "-std=gnu11", "-O1", "-shared", "-fPIC", "-o", library + "", source + "")
              .redirectErrorStream(true)
              .start();
      String said = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (compiler.waitFor() != 0) {
        throw new AssertionError("cc refuses " + SOURCE + ":\n" + said);
      }
      return runtime.open(library);
    } catch (IOException e) {
      throw new TestAbortedException("no C compiler here: " + e.getMessage(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError(e);
    }
  }
}

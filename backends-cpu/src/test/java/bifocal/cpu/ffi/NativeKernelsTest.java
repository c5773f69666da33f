package bifocal.cpu.ffi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A library that cannot be used is told apart: not there, does not load, too old, another size. */
final class NativeKernelsTest {
  private static Consumer<Throwable> missing(String... texts) {
    return thrown -> {
      assertThat(((BifocalException) thrown).code()).isEqualTo(ErrorCode.NATIVE_MISSING);
      assertThat(thrown).hasMessageContainingAll(texts);
    };
  }

  @Test
  void aFileThatIsNotThereIsNotFound(@TempDir Path folder) {
    Path file = folder.resolve("libbifocal_cpu.so");

    assertThatThrownBy(() -> NativeKernels.load(file))
        .satisfies(missing("not found", file.toString(), "build.sh"));
  }

  @Test
  void aFileThatIsNoLibraryTellsTheLoadersText(@TempDir Path folder) throws IOException {
    Path file = Files.writeString(folder.resolve("libbifocal_cpu.so"), "no library");

    assertThatThrownBy(() -> NativeKernels.load(file))
        .satisfies(missing("cannot be loaded", "file too short"));
  }

  @Test
  void aLibraryOfAnotherVersionIsRefused(@TempDir Path folder) throws Exception {
    Path file =
        compiled(
            folder,
            """
            int bifocal_cpu_abi_version(void) { return 999; }
            """);

    assertThatThrownBy(() -> NativeKernels.load(file))
        .satisfies(missing("another version", "999", String.valueOf(NativeKernels.ABI_VERSION)));
  }

  @Test
  void aLibraryThatLacksASymbolIsTooOld(@TempDir Path folder) throws Exception {
    Path file =
        compiled(
            folder,
            """
            int bifocal_cpu_abi_version(void) { return %d; }
            """
                .formatted(NativeKernels.ABI_VERSION));

    assertThatThrownBy(() -> NativeKernels.load(file))
        .satisfies(missing("too old", "bifocal_cpu_sizeof_params"));
  }

  @Test
  void aLibraryWithOtherStructsIsRefused(@TempDir Path folder) throws Exception {
    Path file =
        compiled(
            folder,
            """
            int bifocal_cpu_abi_version(void) { return %d; }
            long bifocal_cpu_sizeof_params(void) { return 8; }
            """
                .formatted(NativeKernels.ABI_VERSION));

    assertThatThrownBy(() -> NativeKernels.load(file))
        .satisfies(missing("another version: parameters", "8"));
  }

  private static Path compiled(Path folder, String source) throws Exception {
    Path code = Files.writeString(folder.resolve("library.c"), source);
    Path library = folder.resolve("library.so");
    Process compiler;
    try {
      compiler =
          new ProcessBuilder("cc", "-shared", "-fPIC", "-o", library.toString(), code.toString())
              .redirectErrorStream(true)
              .start();
    } catch (IOException e) {
      return Assumptions.abort("no C compiler: " + e.getMessage());
    }
    compiler.getInputStream().readAllBytes();
    assertThat(compiler.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(compiler.exitValue()).isZero();
    return library;
  }
}

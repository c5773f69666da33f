package bifocal.tvm;

import static bifocal.tvm.LoadedRuntime.cpuModule;
import static bifocal.tvm.LoadedRuntime.runtime;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.tvm.ffi.Ended;
import bifocal.tvm.ffi.NativeLibraries;
import bifocal.tvm.ffi.RuntimeLibrary;
import io.vavr.collection.LinkedHashMap;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What cannot be used is told apart when it is loaded, and the JVM lives on. */
final class LoadingTest {
  @TempDir private Path folder;

  @Test
  void aRuntimeTellsItsVersion() {
    assertThat(runtime().version()).matches("0\\.1\\.[0-9]+");
  }

  @Test
  void aRuntimeThatIsNotThereIsNotFound() {
    assertThatThrownBy(() -> TvmRuntime.load(folder.resolve("libtvm_ffi.so")))
        .satisfies(refused(ErrorCode.NATIVE_MISSING))
        .hasMessageContainingAll("not found", "libtvm_ffi.so");
  }

  @Test
  void aFileThatIsNoLibraryTellsTheLoadersText() throws Exception {
    Path file = Files.writeString(folder.resolve("libtvm_ffi.so"), "no library");

    assertThat(loadedElsewhere(file))
        .contains("NATIVE_MISSING", "cannot be loaded", "file too short");
  }

  @Test
  void anOlderRuntimeIsRefusedByItsVersion() throws Exception {
    assertThat(loadedElsewhere(NativeLibraries.require("libolder_runtime.so")))
        .contains("NATIVE_MISSING", "another version", "0.1.2", "0.1.9 or a later 0.1");
  }

  @Test
  void aRuntimeThatLacksFunctionsIsRefusedByTheirNames() throws Exception {
    assertThat(loadedElsewhere(NativeLibraries.require("libpart_of_runtime.so")))
        .contains("NATIVE_MISSING", "lacks", "TVMFFIFunctionCreate", "TVMFFIEnvGetStream")
        .doesNotContain("TVMFFIObjectIncRef");
  }

  private String loadedElsewhere(Path runtime) throws Exception {
    Ended ended = Ended.of(folder, LoadAndTell.class, runtime.toAbsolutePath().toString());
    assertThat(ended.code()).as(ended.output()).isZero();
    return ended.output();
  }

  @Test
  void anotherCopyOfTheRuntimeIsRefused() throws IOException {
    runtime();
    Path copy =
        Files.copy(
            NativeLibraries.require(RuntimeLibrary.NAME), folder.resolve(RuntimeLibrary.NAME));

    assertThatThrownBy(() -> TvmRuntime.load(copy))
        .satisfies(refused(ErrorCode.NATIVE_MISSING))
        .hasMessageContaining("another copy of libtvm_ffi.so");
    assertThat(LoadedRuntime.call("add", new Any.Int(1), new Any.Int(2))).isEqualTo(new Any.Int(3));
  }

  @Test
  void aModuleThatIsNotThereIsNotFound() {
    TvmRuntime runtime = runtime();

    assertThatThrownBy(() -> runtime.open(folder.resolve("decode.so")))
        .satisfies(refused(ErrorCode.NATIVE_MISSING))
        .hasMessageContainingAll("not found", "decode.so");
  }

  @Test
  void aModuleThatIsNoLibraryIsRefused() throws IOException {
    TvmRuntime runtime = runtime();
    Path text = Files.writeString(folder.resolve("decode.so"), "\177ELF\2\1 and then nothing");

    assertThatThrownBy(() -> runtime.open(text))
        .satisfies(refused(ErrorCode.NATIVE_MISSING))
        .hasMessageContaining("no library");
  }

  @Test
  void aModuleForANewerRuntimeIsRefusedByTheFunctionsThatItNeeds() {
    TvmRuntime runtime = runtime();
    Path newer = NativeLibraries.require("libnewer_module.so");

    assertThatThrownBy(() -> runtime.open(newer))
        .satisfies(refused(ErrorCode.NATIVE_MISSING))
        .hasMessageContainingAll("newer runtime", runtime.version(), "TVMFFIFromTheFuture");
  }

  @Test
  void aModuleListsItsFunctions() {
    assertThat(cpuModule().functions())
        .contains("add", "scale", "stream")
        .doesNotContain("metadata_add");
    assertThat(cpuModule().unresolved()).isEmpty();
  }

  @Test
  void aFunctionThatIsNotThereIsRefusedWithTheNearestName() {
    TvmModule module = cpuModule();

    assertThatThrownBy(() -> module.function("scael"))
        .satisfies(refused(ErrorCode.NATIVE_MISSING))
        .hasMessageContainingAll("lacks a function", "scael", "'scale'");
  }

  @Test
  void aGlobalFunctionThatIsNotThereIsRefused() {
    TvmRuntime runtime = runtime();

    assertThatThrownBy(() -> runtime.global("ffi.NoSuchFunction"))
        .satisfies(refused(ErrorCode.NATIVE_MISSING))
        .hasMessageContaining("ffi.NoSuchFunction");
  }

  @Test
  void aFunctionOfTheWantedSignatureIsCalled() {
    Signature wanted = Signature.parse("(int, int) -> int");

    assertThat(cpuModule().function("add", wanted).invoke(new Any.Int(1), new Any.Int(2)))
        .isEqualTo(new Any.Int(3));
  }

  @Test
  void aDriftedSignatureIsRefusedByName() {
    TvmModule drifted = runtime().open(NativeLibraries.require("libdrifted_module.so"));

    assertThatThrownBy(() -> drifted.function("add", Signature.parse("(int, int) -> int")))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refused -> {
              assertThat(refused.code()).isEqualTo(ErrorCode.SIGNATURE_MISMATCH);
              assertThat(refused.seen()).isEqualTo("(int, int, Optional<bool>) -> int");
              assertThat(refused.wanted()).isEqualTo("(int, int) -> int");
              assertThat(refused).hasMessageContaining("function add of libdrifted_module.so");
            });
  }

  @Test
  void modulesExportFunctionsOfOneNameSideBySide() {
    TvmModule drifted = runtime().open(NativeLibraries.require("libdrifted_module.so"));

    assertThat(LoadedRuntime.call("add", new Any.Int(1), new Any.Int(2))).isEqualTo(new Any.Int(3));
    assertThatThrownBy(() -> drifted.function("add").invoke(new Any.Int(1), new Any.Int(2)))
        .hasMessageContaining("TypeError: add takes 3 arguments");
  }

  @Test
  void aFunctionThatDoesNotTellItsSignatureIsRefused() {
    TvmModule drifted = runtime().open(NativeLibraries.require("libdrifted_module.so"));

    assertThatThrownBy(() -> drifted.function("untold", Signature.parse("() -> None")))
        .satisfies(refused(ErrorCode.NATIVE_MISSING))
        .hasMessageContainingAll("untold", "TVM_FFI_DLL_EXPORT_INCLUDE_METADATA");
  }

  @Test
  void everyReasonAgainstAModuleIsTold() {
    TvmModule drifted = runtime().open(NativeLibraries.require("libdrifted_module.so"));
    Signature wanted = Signature.parse("(int, int) -> int");

    assertThat(
            drifted
                .functions(LinkedHashMap.of("add", wanted, "untold", wanted, "absent", wanted))
                .getError()
                .map(BifocalException::code))
        .containsExactly(
            ErrorCode.SIGNATURE_MISMATCH, ErrorCode.NATIVE_MISSING, ErrorCode.NATIVE_MISSING);
    assertThat(cpuModule().functions(LinkedHashMap.of("add", wanted)).get().keySet())
        .containsExactly("add");
  }

  private static Consumer<Throwable> refused(ErrorCode code) {
    return thrown ->
        assertThat(thrown)
            .isInstanceOfSatisfying(
                BifocalException.class, exception -> assertThat(exception.code()).isEqualTo(code));
  }
}

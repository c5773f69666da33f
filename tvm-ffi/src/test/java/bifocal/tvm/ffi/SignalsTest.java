package bifocal.tvm.ffi;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A library that takes SIGSEGV for itself ends the JVM, unless it is loaded as here. */
final class SignalsTest {
  @TempDir private Path folder;

  @Test
  void aLibraryThatTakesTheSignalEndsTheJvmIfItIsLoadedAsAnyOther() throws Exception {
    Ended ended = child("libthief.so", "unprotected", "after-loading");

    assertThat(ended.code()).as(ended.output()).isNotZero();
    assertThat(ended.output()).contains("thief: caught a signal").doesNotContain("survived");
  }

  @Test
  void nullReferencesAreMetAfterLoading() throws Exception {
    Ended ended = child("libthief.so", "shield", "after-loading");

    assertThat(ended.code()).as(ended.output()).isZero();
    assertThat(ended.output()).contains("survived 1000 null references after loading");
  }

  @Test
  void nullReferencesAreMetWhileTheLibraryHoldsTheSignal() throws Exception {
    Ended ended = child("libthief.so", "shield", "while-loading");

    assertThat(ended.code()).as(ended.output()).isZero();
    assertThat(ended.output()).containsPattern("met [1-9][0-9]* null references while loading");
  }

  @Test
  void handlersThatWerePutBackLeaveAGapWhileLoading() throws Exception {
    assertThat(child("libthief.so", "put-back", "after-loading").code()).isZero();
    assertThat(child("libthief.so", "put-back", "while-loading").code()).isNotZero();
  }

  @Test
  void theRuntimeAsItIsShippedEndsTheJvmIfItIsLoadedAsAnyOther() throws Exception {
    Ended ended = child(RuntimeLibrary.NAME, "unprotected", "after-loading");

    assertThat(ended.code()).as(ended.output()).isNotZero();
    assertThat(ended.output()).doesNotContain("survived");
  }

  @Test
  void theRuntimeAsItIsShippedIsLoadedWhileNullReferencesAreMet() throws Exception {
    Ended ended = child(RuntimeLibrary.NAME, "shield", "while-loading");

    assertThat(ended.code()).as(ended.output()).isZero();
    assertThat(ended.output()).contains("survived 1000 null references after loading");
  }

  private Ended child(String library, String how, String when)
      throws IOException, InterruptedException {
    return Ended.of(
        folder,
        LoadAndTrap.class,
        NativeLibraries.require(library).toAbsolutePath().toString(),
        how,
        when);
  }
}

package bifocal.core.error;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.fasterxml.jackson.databind.DeserializationFeature;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.charset.MalformedInputException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FileFailureTest {
  private static final JsonMapper JSON =
      JsonMapper.builder()
          .enable(DeserializationFeature.FAIL_ON_TRAILING_TOKENS)
          .enable(DeserializationFeature.FAIL_ON_READING_DUP_TREE_KEY)
          .build();

  @TempDir private Path folder;

  @Test
  void reasonsNameNoClassAndNoFileTwice() {
    assertThat(FileFailure.reason(new NoSuchFileException("x")))
        .isEqualTo("there is no such file or folder");
    assertThat(FileFailure.reason(new AccessDeniedException("x"))).isEqualTo("access is denied");
    assertThat(FileFailure.reason(new FileSystemException("x", null, "Not a directory")))
        .isEqualTo("Not a directory");
    assertThat(FileFailure.reason(new MalformedInputException(4)))
        .isEqualTo("bytes that are no UTF-8");
    assertThat(FileFailure.reason(new IOException("No space left on device")))
        .isEqualTo("No space left on device");
    assertThat(FileFailure.reason(new IOException())).isEqualTo("the system does not say why");
    assertThat(FileFailure.reason(new FileSystemException("x")))
        .isEqualTo("the system does not say why");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "{\"a\":[1, | it is cut: its JSON has no end, line 1, column 9",
        "{\"a | it is cut: its JSON has no end, line 1, column 4",
        "{\"a\":1,\"a\":2} | the key 'a' twice, line 1, column 12",
        "{'a':1} | not JSON: unexpected ''', line 1, column 2",
        "hello | not JSON: unexpected 'hello', line 1, column 1",
        "{} {} | more behind the end of its JSON, line 1, column 4",
        "nobody_types_names_as_long_as_this | not JSON: unexpected 'nobody_types_names_a...',"
            + " line 1, column 1",
      })
  void whatIsNoJsonIsShownWithItsPlace(String text, String reason) {
    IOException failure = catchThrowableOfType(IOException.class, () -> JSON.readTree(text));

    assertThat(FileFailure.reason(failure)).isEqualTo(reason);
  }

  @Test
  void depthsAndLengthsBeyondTheParsersAreNotItsOwnWords() {
    IOException deep =
        catchThrowableOfType(IOException.class, () -> JSON.readTree("[".repeat(5000)));
    IOException wide =
        catchThrowableOfType(IOException.class, () -> JSON.readTree("9".repeat(5000)));

    assertThat(FileFailure.reason(deep)).startsWith("nested too deep");
    assertThat(FileFailure.reason(wide)).startsWith("nested too deep, or a number");
  }

  @Test
  void aFolderIsCalledOne() throws IOException {
    IOException failure = catchThrowableOfType(IOException.class, () -> Files.readString(folder));

    assertThat(FileFailure.reading("--in", folder, failure))
        .hasMessage("--in '" + folder + "': a folder, wanted a file that can be read")
        .hasCause(failure);
    assertThat(FileFailure.reading("--in", Path.of(""), failure)).hasMessageContaining("no name");
    assertThat(FileFailure.writing("--out", folder, failure)).hasMessageContaining(": a folder");
  }

  @Test
  void onlyWhatWasReadIsMalformed() {
    Path file = folder.resolve("file");

    assertThat(FileFailure.reading("--in", file, new MalformedInputException(1)).code())
        .isEqualTo(ErrorCode.MALFORMED_INPUT);
    assertThat(FileFailure.reading("--in", file, new NoSuchFileException("x")).code())
        .isEqualTo(ErrorCode.INVALID_OPTION);
  }
}

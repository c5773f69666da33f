package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class TraceFileTest {
  private static final String HEADER = "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n";

  @TempDir private Path folder;

  private TraceFile read(String content) throws IOException {
    Path file = folder.resolve("trace.csv");
    Files.writeString(file, content, StandardCharsets.ISO_8859_1);
    return TraceFile.read(file);
  }

  @Test
  void theShippedTraceHasTwoThousandRequests() {
    assertThat(TraceFile.shipped().requests()).hasSize(2000);
  }

  @Test
  void columnsAreFoundByName() throws IOException {
    TraceFile trace = read("ContextTokens,GeneratedTokens\r\n12,3\r\n");

    assertThat(trace.requests().head().contextTokens()).isEqualTo(12);
    assertThat(trace.requests().head().numImages()).isZero();
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "a,b\n1,2\n",
        HEADER + "t,1,2\n",
        HEADER + "t,1,2,3,4\n",
        HEADER + "t,x,2,3\n",
        HEADER + "t,1,0,3\n",
        HEADER + "t,1,-5,3\n",
        HEADER + "t,1,99999999999,3\n",
        HEADER + "t,1,2,0\n",
        HEADER + "t,1,2,\u00ff\n",
      })
  void whatIsNotATraceIsRefused(String content) {
    assertThatThrownBy(() -> read(content))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> assertThat(refusal.code()).isEqualTo(ErrorCode.MALFORMED_INPUT));
  }

  @Test
  void aFileThatEndsInsideALineIsCalledSo() {
    assertThatThrownBy(() -> read(HEADER + "t,1,2,3\nt,1,2"))
        .hasMessageContaining("line 3")
        .hasMessageContaining("the file ends inside this line, after 63 bytes");
    assertThatThrownBy(() -> read(HEADER + "t,1,2\nt,1,2,3\n"))
        .hasMessageContaining("line 2")
        .message()
        .doesNotContain("ends inside");
  }

  @Test
  void aRequestLongerThanPositionsCountIsRefused() {
    assertThatThrownBy(() -> read(HEADER + "t,1,2147483647,1\n"))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refusal -> assertThat(refusal.code()).isEqualTo(ErrorCode.OVERFLOW))
        .hasMessageContaining("2147483648 together");
  }

  @Test
  void theLineAtFaultIsNamed() {
    assertThatThrownBy(() -> read(HEADER + "t,1,2,3\nt,1,two,3\n"))
        .hasMessageContaining("ContextTokens in line 3")
        .hasMessageContaining("'two'");
  }

  @Test
  void aWindowOutsideTheTraceIsRefused() {
    assertThatThrownBy(() -> TraceFile.shipped().window(1999, 2))
        .hasMessageContaining("--requests: 2, wanted 1..1");
  }
}

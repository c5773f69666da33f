package bifocal.core.error;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class BifocalExceptionTest {

  @Test
  void oneLineSaysWhatWasSeenWhatWasWantedAndWhatToDo() {
    BifocalException failure =
        BifocalException.of(ErrorCode.POOL_EXHAUSTED, "free blocks", 3, 9)
            .withRemedy("let requests finish");
    assertThat(failure).hasMessage("free blocks: 3, wanted 9; let requests finish");
    assertThat(failure.code()).isEqualTo(ErrorCode.POOL_EXHAUSTED);
    assertThat(failure.seen()).isEqualTo("3");
    assertThat(failure.wanted()).isEqualTo("9");
    assertThat(failure.remedy()).isEqualTo("let requests finish");
  }

  @Test
  void aSentenceThatSaysItAllStandsAlone() {
    BifocalException failure = BifocalException.of(ErrorCode.CLOSED, "the pool was closed");
    assertThat(failure).hasMessage("the pool was closed").hasNoCause();
    assertThat(failure.seen() + failure.wanted() + failure.remedy()).isEmpty();
  }

  @Test
  void adviceKeepsTheCauseAndACauseKeepsTheAdvice() {
    IllegalStateException cause = new IllegalStateException("native");
    BifocalException failure =
        BifocalException.of(ErrorCode.NATIVE_FAILED, "launch", "code 700", "0");
    assertThat(failure.causedBy(cause).withRemedy("look at the driver's log"))
        .hasCause(cause)
        .hasMessage("launch: code 700, wanted 0; look at the driver's log");
    assertThat(failure.withRemedy("look").causedBy(cause))
        .hasCause(cause)
        .hasMessageEndingWith("look");
  }
}

package bifocal.cuda.fake;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.function.Consumer;

/** What tests ask of an exception. */
public final class Refusals {
  private Refusals() {}

  /** A failure of a code whose message has every one of some texts. */
  public static Consumer<Throwable> refused(ErrorCode code, String... texts) {
    return thrown -> {
      assertThat(thrown).isInstanceOf(BifocalException.class);
      assertThat(((BifocalException) thrown).code()).as(thrown.getMessage()).isEqualTo(code);
      for (String text : texts) {
        assertThat(thrown).hasMessageContaining(text);
      }
    };
  }
}

package bifocal.core.error;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import org.assertj.core.api.AbstractStringAssert;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** Asserts typed refusals. */
public final class Refusals {
  private Refusals() {}

  /** The call is refused with a code; the message goes on to further assertions. */
  public static AbstractStringAssert<?> assertRefused(ErrorCode code, ThrowingCallable call) {
    BifocalException refusal = catchThrowableOfType(BifocalException.class, call);
    assertThat(refusal).as("a refusal with %s", code).isNotNull();
    assertThat(refusal.code()).as(refusal.getMessage()).isEqualTo(code);
    return assertThat(refusal.getMessage());
  }
}

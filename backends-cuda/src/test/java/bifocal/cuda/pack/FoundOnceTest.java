package bifocal.cuda.pack;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.control.Validation;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class FoundOnceTest {
  private final AtomicInteger searches = new AtomicInteger();

  @Test
  void aHostIsSearchedOnce() {
    FoundOnce<Integer> found = new FoundOnce<>(() -> Validation.valid(searches.incrementAndGet()));

    assertThat(searches).hasValue(0);
    assertThat(found.require()).isOne();
    assertThat(found.result().get()).isOne();
    assertThat(searches).hasValue(1);
  }

  @Test
  void aSearchThatThrowsIsAReasonAndIsNotRepeated() {
    BifocalException why = BifocalException.of(ErrorCode.NATIVE_MISSING, "no such library");
    FoundOnce<Integer> found =
        new FoundOnce<>(
            () -> {
              searches.incrementAndGet();
              throw why;
            });

    assertThat(found.result().getError()).isSameAs(why);
    assertThatThrownBy(found::require).isSameAs(why);
    assertThat(searches).hasValue(1);
  }
}

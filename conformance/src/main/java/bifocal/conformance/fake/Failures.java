package bifocal.conformance.fake;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.HashMap;
import io.vavr.collection.Map;

/**
 * Which calls of a fake fail: for each kind of call, the first number of calls that pass before the
 * one that fails.
 */
public record Failures(Map<Class<? extends Call>, Integer> at) {
  /** Nothing fails. */
  public static final Failures NONE = new Failures(HashMap.empty());

  /** The same failures and one more: the {@code nth} call of a kind, counted from 1, fails. */
  public Failures and(Class<? extends Call> kind, int nth) {
    return new Failures(at.put(kind, nth));
  }

  /** The {@code nth} call of a kind, counted from 1, fails. */
  public static Failures on(Class<? extends Call> kind, int nth) {
    return NONE.and(kind, nth);
  }

  /**
   * Fails if the script says so.
   *
   * @throws BifocalException {@code NATIVE_FAILED}
   */
  void check(CallLog log, Call call) {
    int nth = log.of(call.getClass(), call.backend()).size();
    if (at.get(call.getClass()).contains(nth)) {
      throw BifocalException.of(
          ErrorCode.NATIVE_FAILED, call.backend() + " was told to fail here: " + call);
    }
  }
}

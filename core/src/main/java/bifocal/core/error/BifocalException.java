package bifocal.core.error;

import io.vavr.control.Option;

/**
 * A failure with a stable code, the value seen, the value wanted and, where there is one, what to
 * do about it. The message joins all four in one line.
 */
public final class BifocalException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final ErrorCode code;
  private final String what;
  private final String seen;
  private final String wanted;
  private final String remedy;
  private final Option<Integer> request;

  private BifocalException(
      ErrorCode code,
      String what,
      String seen,
      String wanted,
      String remedy,
      Option<Integer> request,
      Option<Throwable> cause) {
    super(null, cause.getOrNull());
    this.code = code;
    this.what = what;
    this.seen = seen;
    this.wanted = wanted;
    this.remedy = remedy;
    this.request = request;
  }

  /** A failure described by what is wrong, what was seen and what was wanted. */
  public static BifocalException of(ErrorCode code, String what, Object seen, Object wanted) {
    return new BifocalException(
        code, what, String.valueOf(seen), String.valueOf(wanted), "", Option.none(), Option.none());
  }

  /** A failure that one sentence says in full. */
  public static BifocalException of(ErrorCode code, String what) {
    return new BifocalException(code, what, "", "", "", Option.none(), Option.none());
  }

  /** A failure of one request of a batch. */
  public static BifocalException ofRequest(
      ErrorCode code, int request, Object seen, Object wanted) {
    return new BifocalException(
        code,
        "request " + request,
        String.valueOf(seen),
        String.valueOf(wanted),
        "",
        Option.some(request),
        Option.none());
  }

  /** The same failure, named after where it is: a file, an option. */
  public BifocalException in(String place) {
    return new BifocalException(
        code, place + ": " + what, seen, wanted, remedy, request, Option.of(getCause()));
  }

  /** The same failure with advice. */
  public BifocalException withRemedy(String advice) {
    return new BifocalException(code, what, seen, wanted, advice, request, Option.of(getCause()));
  }

  /** The same failure with the throwable that led to it. */
  public BifocalException causedBy(Throwable cause) {
    return new BifocalException(code, what, seen, wanted, remedy, request, Option.some(cause));
  }

  @Override
  public String getMessage() {
    return line(what, seen, wanted, remedy);
  }

  /** Stable code of the failure. */
  public ErrorCode code() {
    return code;
  }

  /** The value found, empty when the message says it all. */
  public String seen() {
    return seen;
  }

  /** The value needed, empty when the message says it all. */
  public String wanted() {
    return wanted;
  }

  /** What to do, empty when nothing is known. */
  public String remedy() {
    return remedy;
  }

  /** The request of the batch that is at fault, absent when no single one is. */
  public Option<Integer> request() {
    return request;
  }

  private static String line(String what, String seen, String wanted, String remedy) {
    StringBuilder line = new StringBuilder(what);
    if (!seen.isEmpty()) {
      line.append(": ").append(seen);
    }
    if (!wanted.isEmpty()) {
      line.append(seen.isEmpty() ? ": wanted " : ", wanted ").append(wanted);
    }
    if (!remedy.isEmpty()) {
      line.append("; ").append(remedy);
    }
    return line.toString();
  }
}

package bifocal.cli.command;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.control.Option;

/** The end of a command that does not do what it was asked: why, and with which exit status. */
public final class CliFailure extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final ErrorCode code;
  private final String message;
  private final Option<Integer> request;
  private final Map<String, Object> beside;

  private CliFailure(
      ErrorCode code,
      String message,
      Option<Integer> request,
      Map<String, Object> beside,
      Option<Throwable> cause) {
    super(message, cause.getOrNull());
    this.code = code;
    this.message = message;
    this.request = request;
    this.beside = beside;
  }

  /** A failure that one message says in full. */
  public static CliFailure of(ErrorCode code, String message) {
    return new CliFailure(code, message, Option.none(), LinkedHashMap.empty(), Option.none());
  }

  /** A failure of Bifocal as the end of a command. */
  public static CliFailure of(BifocalException failure) {
    return new CliFailure(
        failure.code(),
        failure.getMessage(),
        failure.request(),
        LinkedHashMap.empty(),
        Option.some(failure));
  }

  /** Anything else that was thrown, as the end of a command. */
  static CliFailure of(Throwable thrown) {
    return switch (thrown) {
      case CliFailure failure -> failure;
      case BifocalException failure -> of(failure);
      default ->
          of(ErrorCode.INTERNAL, "fault in bifocal: " + thrown + "; --debug shows where")
              .causedBy(thrown);
    };
  }

  /** The same failure, of one request of a batch. */
  public CliFailure inRequest(int index) {
    return new CliFailure(code, message, Option.some(index), beside, Option.of(getCause()));
  }

  /** The same failure with the throwable that led to it. */
  public CliFailure causedBy(Throwable thrown) {
    return new CliFailure(code, message, request, beside, Option.some(thrown));
  }

  /** The same failure with one more key in its JSON object, after {@code error}. */
  public CliFailure with(String key, Object value) {
    return new CliFailure(code, message, request, beside.put(key, value), Option.of(getCause()));
  }

  @Override
  public String getMessage() {
    return message;
  }

  /** Stable code. */
  public ErrorCode code() {
    return code;
  }

  /** The request at fault, absent when no single one is. */
  public Option<Integer> request() {
    return request;
  }

  /** The status the command ends with. */
  public ExitStatus status() {
    return ExitStatus.of(code);
  }

  /** What the JSON object holds after {@code error}. */
  Map<String, Object> beside() {
    return beside;
  }
}

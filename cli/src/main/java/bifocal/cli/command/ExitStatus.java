package bifocal.cli.command;

import bifocal.core.error.ErrorCode;

/** What the exit status of a command says. */
public enum ExitStatus {
  /** Done. */
  DONE(0),
  /** A check failed, or Bifocal is at fault. */
  FAILED(1),
  /** The request is refused: a bad option, an invalid selection or composition, a bad input. */
  REFUSED(2);

  private final int number;

  ExitStatus(int number) {
    this.number = number;
  }

  /** The number that the process ends with. */
  public int number() {
    return number;
  }

  /** The status that a failure with this code ends a command with. */
  public static ExitStatus of(ErrorCode code) {
    return switch (code) {
      case INTERNAL, NATIVE_FAILED, CLOSED, WRONG_THREAD -> FAILED;
      default -> REFUSED;
    };
  }
}

package bifocal.core.host;

import io.vavr.control.Option;

/**
 * One thing that was looked at on this host.
 *
 * @param topic what, in one word, for instance {@code threads}
 * @param status how it stands
 * @param seen what was found, or what was looked for where
 * @param remedy what to do about it, absent when there is nothing to do
 */
public record Finding(String topic, Status status, String seen, Option<String> remedy) {
  /** How a thing stands. */
  public enum Status {
    /** As good as it gets. */
    GOOD("good"),
    /** It works, and could be better. */
    LIMITED("limited"),
    /** It is not here, and what is here works without. */
    ABSENT("absent"),
    /** It was asked for and does not work. */
    FAILED("failed");

    private final String label;

    Status(String label) {
      this.label = label;
    }

    /** As reports print it. */
    public String label() {
      return label;
    }
  }

  /** Something as good as it gets. */
  public static Finding good(String topic, String seen) {
    return new Finding(topic, Status.GOOD, seen, Option.none());
  }

  /** Something that works, and would be better with the remedy. */
  public static Finding limited(String topic, String seen, String remedy) {
    return new Finding(topic, Status.LIMITED, seen, Option.some(remedy));
  }

  /** Something that is not here. */
  public static Finding absent(String topic, String seen, String remedy) {
    return new Finding(topic, Status.ABSENT, seen, Option.some(remedy));
  }

  /** Something that was asked for and does not work. */
  public static Finding failed(String topic, String seen, String remedy) {
    return new Finding(topic, Status.FAILED, seen, Option.some(remedy));
  }
}

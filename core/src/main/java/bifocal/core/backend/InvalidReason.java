package bifocal.core.backend;

import bifocal.core.device.DeviceProfile;
import com.fasterxml.jackson.annotation.JsonProperty;
import com.fasterxml.jackson.annotation.JsonPropertyOrder;
import io.vavr.Value;
import java.util.Objects;
import java.util.function.Supplier;

/**
 * One reason why a backend cannot serve a layer. What was asked for and what the backend can do are
 * kept as they are, and put into words when somebody reads them.
 */
@JsonPropertyOrder({"code", "text", "seen", "wanted"})
public final class InvalidReason {
  private final ReasonCode code;
  private final Supplier<String> text;
  private final Object seen;
  private final Object wanted;

  /**
   * A reason.
   *
   * @param code stable code
   * @param text what users read, for instance {@code head_size not supported}
   * @param seen what was asked for: an immutable value
   * @param wanted what the backend can do: an immutable value
   */
  public InvalidReason(ReasonCode code, String text, Object seen, Object wanted) {
    this(code, () -> text, seen, wanted);
  }

  /** A reason whose text, too, is put together when somebody reads it. */
  public InvalidReason(ReasonCode code, Supplier<String> text, Object seen, Object wanted) {
    this.code = code;
    this.text = text;
    this.seen = seen;
    this.wanted = wanted;
  }

  /** Stable code. */
  @JsonProperty
  public ReasonCode code() {
    return code;
  }

  /** What users read. */
  @JsonProperty
  public String text() {
    return text.get();
  }

  /** What was asked for, in words. */
  @JsonProperty
  public String seen() {
    return inWords(seen);
  }

  /** What the backend can do, in words. */
  @JsonProperty
  public String wanted() {
    return inWords(wanted);
  }

  /** The same reason under the name of the backend that gives it. */
  public InvalidReason saidBy(BackendName backend) {
    return new InvalidReason(code, () -> backend + ": " + text(), seen, wanted);
  }

  /** The same reason with another word on what the backend can do. */
  InvalidReason wanting(Object other) {
    return new InvalidReason(code, text, seen, other);
  }

  /** Members of a set are listed; a device goes by its label. */
  private static String inWords(Object value) {
    return switch (value) {
      case DeviceProfile device -> device.label();
      case Value<?> members -> members.toVector().mkString(", ");
      default -> value.toString();
    };
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof InvalidReason that
        && code == that.code
        && text().equals(that.text())
        && seen().equals(that.seen())
        && wanted().equals(that.wanted());
  }

  @Override
  public int hashCode() {
    return Objects.hash(code, text());
  }

  @Override
  public String toString() {
    return text();
  }
}

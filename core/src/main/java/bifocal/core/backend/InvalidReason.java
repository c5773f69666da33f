package bifocal.core.backend;

/**
 * One reason why a backend cannot serve a layer.
 *
 * @param code stable code
 * @param text what users read, for instance {@code head_size not supported}
 * @param seen what was asked for
 * @param wanted what the backend can do
 */
public record InvalidReason(ReasonCode code, String text, String seen, String wanted) {
  @Override
  public String toString() {
    return text;
  }
}

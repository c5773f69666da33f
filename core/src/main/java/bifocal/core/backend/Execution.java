package bifocal.core.backend;

/**
 * Whether this build has kernels of a backend, whatever the host.
 *
 * @param status kind of execution
 * @param reason a code, then text; empty when native
 */
public record Execution(Status status, String reason) {
  /** Runs wherever its platform does. */
  public static final Execution NATIVE = new Execution(Status.NATIVE, "");

  /** Kinds of execution. */
  public enum Status {
    NATIVE("native"),
    NATIVE_WITH_PACK("native with pack"),
    REFERENCE_ONLY("reference only"),
    NOT_HERE("not here");

    private final String label;

    Status(String label) {
      this.label = label;
    }

    /** As tables print it. */
    public String label() {
      return label;
    }
  }
}

package bifocal.cuda.pack;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * Why a pack, or a kernel of it, is not used.
 *
 * @param code stable code
 * @param what what was looked at
 * @param seen what was found
 * @param wanted what was needed
 * @param remedy what to do
 */
public record PackRefusal(Code code, String what, String seen, String wanted, String remedy) {

  /** Stable codes of refusals. */
  public enum Code {
    /** The directory or its manifest is not there. */
    NOT_FOUND,
    /** The manifest is not what its format says. */
    MALFORMED,
    /** The manifest has a field that this build does not know. */
    UNKNOWN_FIELD,
    /** The manifest is of another version. */
    FORMAT,
    /** The kernels are for another device. */
    TARGET,
    /** A binary is not there. */
    FILE_MISSING,
    /** A binary is cut off or changed. */
    HASH,
    /** The pack has no kernel for what is asked. */
    KERNEL_MISSING,
    /** The binary's parameters are not those of the manifest, or not those of its kind. */
    PARAMETERS,
    /** A kernel needs more of the device than it has. */
    RESOURCES
  }

  /** The refusal as a failure. */
  public BifocalException asException() {
    ErrorCode as =
        switch (code) {
          case MALFORMED, UNKNOWN_FIELD, FORMAT -> ErrorCode.MALFORMED_INPUT;
          case NOT_FOUND, TARGET, FILE_MISSING, HASH, KERNEL_MISSING, PARAMETERS, RESOURCES ->
              ErrorCode.NATIVE_MISSING;
        };
    return BifocalException.of(as, what, seen, wanted).withRemedy(remedy);
  }

  /** One line. */
  public String line() {
    return what + ": " + seen + ", wanted " + wanted + (remedy.isEmpty() ? "" : "; " + remedy);
  }

  @Override
  public String toString() {
    return line();
  }
}

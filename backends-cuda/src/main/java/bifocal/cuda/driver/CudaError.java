package bifocal.cuda.driver;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

/**
 * A result of the driver that is not success.
 *
 * @param code the number, as {@code CUresult} has it
 * @param name the driver's name of it, for instance {@code CUDA_ERROR_ILLEGAL_ADDRESS}
 * @param text the driver's description
 */
public record CudaError(int code, String name, String text) {
  static final int INVALID_VALUE = 1;
  static final int OUT_OF_MEMORY = 2;
  static final int NO_DEVICE = 100;
  static final int NOT_READY = 600;

  private static final String LOST_REMEDY = "start a new process; this one cannot use the device";

  /** Whether the device memory does not suffice. */
  public boolean outOfMemory() {
    return code == OUT_OF_MEMORY;
  }

  /**
   * Whether the context can never be used again, so that only a new process helps. The codes are
   * those of faults that kernels and the hardware report after a launch.
   */
  public boolean sticky() {
    return switch (code) {
      case 214, // uncorrectable memory error
          220, // NVLink error
          226, // contained memory error
          700, // illegal address
          702, // launch timed out
          709, // context is destroyed
          710, // assertion in a kernel
          714, // hardware stack error
          715, // illegal instruction
          716, // misaligned address
          717, // invalid address space
          718, // invalid program counter
          719, // launch failed
          721, // tensor memory leaked
          810, // the server of a shared device ended the client
          999 -> // unknown
          true;
      default -> false;
    };
  }

  /** Whether a stream was not capturing as it should, or could not capture what was launched. */
  public boolean ofCapture() {
    return code >= 900 && code <= 908;
  }

  /** The exception for a function that returned this. */
  BifocalException failure(String function) {
    ErrorCode kind =
        outOfMemory()
            ? ErrorCode.DEVICE_MEMORY_EXHAUSTED
            : sticky()
                ? ErrorCode.DEVICE_LOST
                : ofCapture() ? ErrorCode.NOT_CAPTURABLE : ErrorCode.NATIVE_FAILED;
    BifocalException failure =
        BifocalException.of(kind, "the CUDA driver's " + function, this, "success");
    return sticky() ? failure.withRemedy(LOST_REMEDY) : failure;
  }

  /** The exception for a call that is not made, because this was returned before. */
  BifocalException afterLoss(String function) {
    return BifocalException.of(
            ErrorCode.DEVICE_LOST,
            function + " was not called: the device was lost",
            this,
            "a usable context")
        .withRemedy(LOST_REMEDY);
  }

  @Override
  public String toString() {
    return code + " " + name + " (" + text + ")";
  }
}

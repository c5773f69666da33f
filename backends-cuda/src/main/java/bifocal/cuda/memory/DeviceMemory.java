package bifocal.cuda.memory;

import bifocal.core.error.BifocalException;

/** Where blocks of device memory come from. */
public interface DeviceMemory extends AutoCloseable {
  /**
   * Allocates a block, whose content is unknown.
   *
   * @param name what it is for
   * @throws BifocalException {@code DEVICE_MEMORY_EXHAUSTED} with the bytes wanted and left, before
   *     the driver is asked if the estimate shows it already; {@code INVALID_PARAMETER}
   */
  DeviceBlock acquire(String name, long bytes);

  /** Bytes that may still be acquired, as estimated now. */
  long available();

  /**
   * Ends the memory; closing twice is harmless.
   *
   * @throws BifocalException {@code IN_USE} naming the blocks that are not closed
   */
  @Override
  void close();
}

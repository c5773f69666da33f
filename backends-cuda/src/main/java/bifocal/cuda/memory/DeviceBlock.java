package bifocal.cuda.memory;

import java.lang.foreign.MemorySegment;

/** Memory on a device, owned by whoever acquired it. */
public interface DeviceBlock extends AutoCloseable {
  /** What it is for, as reports call it. */
  String name();

  /**
   * The addresses, a multiple of 256, alive until the block is closed. Reading or writing them on
   * the host throws {@link WrongThreadException}.
   */
  MemorySegment segment();

  /** Address of the first byte, on the device. */
  default long address() {
    return segment().address();
  }

  /** Size, as it was asked for. */
  default long bytes() {
    return segment().byteSize();
  }

  /** Gives the memory back, when everything launched before has run; closing twice is harmless. */
  @Override
  void close();
}

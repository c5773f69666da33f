package bifocal.core.cache;

import java.lang.foreign.MemorySegment;

/**
 * How a pool clears and copies blocks on the device that holds them, in the order of that device's
 * stream: before anything launched later reads them.
 */
public interface BlockMemory {
  /** Host memory. */
  BlockMemory HOST =
      new BlockMemory() {
        @Override
        public void zero(MemorySegment record) {
          record.fill((byte) 0);
        }

        @Override
        public void copy(MemorySegment from, MemorySegment to) {
          to.copyFrom(from);
        }
      };

  /** Fills a record with zero bytes. */
  void zero(MemorySegment record);

  /** Copies one record over another of the same size. */
  void copy(MemorySegment from, MemorySegment to);
}

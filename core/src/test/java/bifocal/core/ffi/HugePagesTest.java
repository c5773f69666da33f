package bifocal.core.ffi;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;

final class HugePagesTest {
  @Test
  void whatMemoryHoldsStays() {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = arena.allocate(9L << 20, 256);
      for (long at = 0; at < memory.byteSize(); at += 4096) {
        memory.set(ValueLayout.JAVA_LONG_UNALIGNED, at, at);
      }

      HugePages.request(memory);

      for (long at = 0; at < memory.byteSize(); at += 4096) {
        assertThat(memory.get(ValueLayout.JAVA_LONG_UNALIGNED, at)).isEqualTo(at);
      }
    }
  }

  @Test
  void memoryThatHasNoRoomForALargePageIsLeftAlone() {
    try (Arena arena = Arena.ofShared()) {
      assertThat(HugePages.request(arena.allocate(4096, 64))).isFalse();
    }
    assertThat(HugePages.request(MemorySegment.ofArray(new byte[64]))).isFalse();
  }
}

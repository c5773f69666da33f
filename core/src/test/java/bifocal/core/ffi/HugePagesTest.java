package bifocal.core.ffi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;

final class HugePagesTest {
  private static final long PAGE = 2L << 20;

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

  @Test
  void whatFillsAGoodPartOfALargePageBeginsWithOneAndIsAsLongAsWasAskedFor() {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = HugePages.allocate(arena, 600_000, 256);

      assertThat(memory.address() % PAGE).isZero();
      assertThat(memory.byteSize()).isEqualTo(600_000);
      assertThat(memory.mismatch(MemorySegment.ofArray(new byte[600_000]))).isEqualTo(-1);
    }
  }

  @Test
  void littleMemoryTakesNoLargePage() {
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = HugePages.allocate(arena, 5000, 256);

      assertThat(memory.address() % 256).isZero();
      assertThat(memory.byteSize()).isEqualTo(5000);
    }
  }

  @Test
  void lessThanALargePageIsInOneToo() throws IOException {
    try (Arena probe = Arena.ofShared()) {
      assumeThat(HugePages.request(probe.allocate(PAGE, PAGE)))
          .as("this system gives large pages")
          .isTrue();
    }
    try (Arena arena = Arena.ofShared()) {
      MemorySegment memory = HugePages.allocate(arena, 600_000, 256);

      assertThat(kilobytesInLargePages(memory.address())).isGreaterThanOrEqualTo(2048);
    }
  }

  /** Of the mapping that holds an address, as Linux counts them. */
  private static long kilobytesInLargePages(long address) throws IOException {
    List<String> lines = Files.readAllLines(Path.of("/proc/self/smaps"));
    boolean inside = false;
    for (String line : lines) {
      if (line.matches("[0-9a-f]+-[0-9a-f]+ .*")) {
        String[] bounds = line.substring(0, line.indexOf(' ')).split("-");
        inside =
            Long.compareUnsigned(Long.parseUnsignedLong(bounds[0], 16), address) <= 0
                && Long.compareUnsigned(address, Long.parseUnsignedLong(bounds[1], 16)) < 0;
      } else if (inside && line.startsWith("AnonHugePages:")) {
        return Long.parseLong(line.replaceAll("\\D", ""));
      }
    }
    return 0;
  }
}

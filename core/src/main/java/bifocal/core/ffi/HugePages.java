package bifocal.core.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Large pages for memory that is read in no order, such as a paged KV cache, and for what kernels
 * keep in a core's cache, such as their scratch. With small ones, each block costs several
 * translations of addresses, and where the system happens to find the pages decides which of them
 * share places of the cache.
 *
 * <p>Linux only, and a request only: where it is not granted, or native access is not enabled for
 * this module, memory stays as it is.
 */
@SuppressWarnings("restricted")
public final class HugePages {
  private static final long PAGE = 2L << 20;
  private static final long SMALLEST = PAGE / 4;
  private static final int MADV_HUGEPAGE = 14;
  private static final int MADV_COLLAPSE = 25;
  private static final Option<MethodHandle> MADVISE = bind();

  private HugePages() {}

  /** {@code int madvise(void *addr, size_t length, int advice)}. */
  private static Option<MethodHandle> bind() {
    if (!System.getProperty("os.name", "").equals("Linux")
        || !HugePages.class.getModule().isNativeAccessEnabled()) {
      return Option.none();
    }
    Linker linker = Linker.nativeLinker();
    return Option.ofOptional(linker.defaultLookup().find("madvise"))
        .map(
            symbol ->
                linker.downcallHandle(
                    symbol, FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG, JAVA_INT)));
  }

  /**
   * Allocates zero-filled memory and asks for large pages for all of it, if it fills a good part of
   * one; what the last one has more is not used.
   *
   * @param alignment what is wanted of fewer bytes
   */
  public static MemorySegment allocate(Arena arena, long bytes, long alignment) {
    if (bytes < SMALLEST || bytes > Long.MAX_VALUE - PAGE) {
      return arena.allocate(bytes, alignment);
    }
    MemorySegment pages =
        arena.allocate(Math.ceilDiv(bytes, PAGE) * PAGE, Math.max(PAGE, alignment));
    request(pages);
    return pages.asSlice(0, bytes);
  }

  /**
   * Asks for large pages in the part of a native segment that can have them.
   *
   * @return whether all of that part has them now
   */
  public static boolean request(MemorySegment memory) {
    long first = Math.ceilDiv(memory.address(), PAGE) * PAGE;
    long bytes = (memory.address() + memory.byteSize() - first) / PAGE * PAGE;
    return memory.isNative()
        && bytes > 0
        && advise(first, bytes, MADV_HUGEPAGE)
        && advise(first, bytes, MADV_COLLAPSE);
  }

  private static boolean advise(long address, long bytes, int advice) {
    try {
      return MADVISE.isDefined() && (int) MADVISE.get().invokeExact(address, bytes, advice) == 0;
    } catch (Throwable thrown) {
      throw new IllegalStateException("madvise cannot be called", thrown);
    }
  }
}

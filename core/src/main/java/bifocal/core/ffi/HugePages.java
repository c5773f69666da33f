package bifocal.core.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.vavr.control.Option;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Large pages for memory that is read in no order, such as a paged KV cache: with small ones, each
 * block costs several translations of addresses.
 *
 * <p>Linux only, and a request only: where it is not granted, or native access is not enabled for
 * this module, memory stays as it is.
 */
@SuppressWarnings("restricted")
public final class HugePages {
  private static final long PAGE = 2L << 20;
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
   * Alignment for so many bytes: a large page where they fill one.
   *
   * @param smallest what is wanted of fewer bytes
   */
  public static long alignment(long bytes, long smallest) {
    return bytes < PAGE ? smallest : Math.max(PAGE, smallest);
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

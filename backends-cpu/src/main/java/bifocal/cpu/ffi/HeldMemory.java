package bifocal.cpu.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Keeps memory open while work uses its addresses, on this thread and on others. Whoever closes the
 * memory's arena meanwhile is refused by the JVM, and whoever closes this owner by {@code IN_USE}.
 *
 * <p>The JVM keeps segments open that are arguments of a native call, as long as the call takes. So
 * the work is run inside one: {@code bsearch} of the C library, over an array of one element, calls
 * its comparison once and looks at nothing itself. Each call holds two segments; calls are nested
 * for more. It costs well under a microsecond and allocates nothing.
 *
 * <p>One thread at a time: {@link #begin}, then {@link #add} and {@link #run}, then {@link #end}.
 */
@SuppressWarnings("restricted")
public final class HeldMemory implements AutoCloseable {
  private static final int OPEN = 0;
  private static final int RUNNING = 1;
  private static final int CLOSED = 2;

  private final String owner;
  private final Calls calls;
  private final Arena arena = Arena.ofShared();

  /** The comparison. */
  private final MemorySegment callback;

  private final AtomicInteger state = new AtomicInteger(OPEN);

  /**
   * Holds nothing yet.
   *
   * @param owner who uses the memory, as refusals call it
   */
  public HeldMemory(String owner) {
    this.owner = owner;
    this.calls = new Calls(owner);
    this.callback =
        Linker.nativeLinker().upcallStub(Calls.COMPARE.bindTo(calls), Calls.COMPARISON, arena);
  }

  /**
   * Begins a use.
   *
   * @throws BifocalException {@code CLOSED}, or {@code IN_USE} while another thread uses it
   */
  public void begin() {
    if (!state.compareAndSet(OPEN, RUNNING)) {
      throw state.get() == CLOSED
          ? BifocalException.of(ErrorCode.CLOSED, owner + " was closed")
          : BifocalException.of(ErrorCode.IN_USE, owner + " runs on another thread");
    }
  }

  /** Adds memory to be held; memory of the Java heap needs no holding. */
  public void add(MemorySegment memory) {
    if (memory.isNative()) {
      calls.add(memory);
    }
  }

  /**
   * Runs work while the added memory is held. What the work throws is thrown here.
   *
   * @throws BifocalException {@code CLOSED} when some of the memory was released, {@code
   *     WRONG_THREAD} when it belongs to another thread
   */
  public void run(Runnable work) {
    calls.run(work, callback.address());
  }

  /** Ends a use. */
  public void end() {
    calls.forget();
    state.set(OPEN);
  }

  /**
   * Ends the owner's life; closing twice is harmless.
   *
   * @throws BifocalException {@code IN_USE} while it is used
   */
  @Override
  public void close() {
    while (!state.compareAndSet(OPEN, CLOSED)) {
      int seen = state.get();
      if (seen == CLOSED) {
        return;
      }
      if (seen == RUNNING) {
        throw BifocalException.of(ErrorCode.IN_USE, owner + " is closed while it runs")
            .withRemedy("let the step end, then close again");
      }
      // The use ended between the two looks.
    }
    arena.close();
  }

  /** The typed refusal for what the JVM throws about memory of an arena. */
  public static BifocalException refusal(String owner, RuntimeException thrown) {
    return switch (thrown) {
      case BifocalException typed -> typed;
      case WrongThreadException wrong ->
          BifocalException.of(ErrorCode.WRONG_THREAD, owner + ": memory of another thread's arena")
              .withRemedy("allocate it from a shared arena, or on the thread that runs steps")
              .causedBy(wrong);
      case IllegalStateException released ->
          BifocalException.of(ErrorCode.CLOSED, owner + ": memory was released").causedBy(released);
      default -> BifocalException.of(ErrorCode.INTERNAL, owner + " failed").causedBy(thrown);
    };
  }

  /** The nested calls, which come back here. */
  private static final class Calls {
    /** {@code void *bsearch(const void *, const void *, size_t, size_t, int (*)(…))}. */
    private static final MethodHandle BSEARCH =
        Linker.nativeLinker()
            .downcallHandle(
                Linker.nativeLinker().defaultLookup().findOrThrow("bsearch"),
                FunctionDescriptor.of(
                    JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG));

    /** {@code int (const void *, const void *)}. */
    private static final FunctionDescriptor COMPARISON =
        FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG);

    private static final MethodHandle COMPARE = comparison();

    private final String owner;
    private MemorySegment[] held = new MemorySegment[8];
    private int count;
    private int next;
    private long callback;
    private @Nullable Runnable work;
    private @Nullable Throwable failure;

    private Calls(String owner) {
      this.owner = owner;
    }

    private static MethodHandle comparison() {
      try {
        return MethodHandles.lookup()
            .findVirtual(
                Calls.class, "compare", MethodType.methodType(int.class, long.class, long.class));
      } catch (ReflectiveOperationException e) {
        throw new ExceptionInInitializerError(e);
      }
    }

    private void add(MemorySegment memory) {
      for (int i = 0; i < count; i++) {
        if (held[i].scope().equals(memory.scope())) {
          return;
        }
      }
      if (count == held.length) {
        held = Arrays.copyOf(held, 2 * count);
      }
      held[count++] = memory;
    }

    private void forget() {
      Arrays.fill(held, 0, count, MemorySegment.NULL);
      count = 0;
      work = null;
    }

    private void run(Runnable task, long address) {
      work = task;
      callback = address;
      next = 0;
      failure = null;
      descend();
      Throwable thrown = failure;
      if (thrown != null) {
        failure = null;
        throw Calls.<RuntimeException>unchecked(thrown);
      }
    }

    /** Holds the next two segments, or does the work when all are held. */
    private void descend() {
      if (next < count) {
        MemorySegment first = held[next++];
        hold(first, next < count ? held[next++] : first);
      } else if (work != null) {
        work.run();
      }
    }

    private void hold(MemorySegment first, MemorySegment second) {
      try {
        long _ = (long) BSEARCH.invokeExact(first, second, 1L, 1L, callback);
      } catch (RuntimeException thrown) {
        throw refusal(owner, thrown);
      } catch (Error error) {
        throw error;
      } catch (Throwable thrown) {
        throw BifocalException.of(ErrorCode.INTERNAL, "a call of bsearch failed").causedBy(thrown);
      }
    }

    /** The comparison. Below it is native code, so nothing may be thrown out of it. */
    @SuppressWarnings({"UnusedMethod", "UnusedVariable"}) // native code calls it
    private int compare(long key, long element) {
      try {
        descend();
      } catch (Throwable thrown) {
        failure = thrown;
      }
      return 0;
    }

    @SuppressWarnings("unchecked")
    private static <T extends Throwable> T unchecked(Throwable thrown) throws T {
      throw (T) thrown;
    }
  }
}

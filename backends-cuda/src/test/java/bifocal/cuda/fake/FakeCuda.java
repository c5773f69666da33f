package bifocal.cuda.fake;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bifocal.cuda.driver.CudaDriver;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Either;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.regex.Pattern;
import org.opentest4j.TestAbortedException;

/**
 * The stand-in for the CUDA driver that {@code kernels/fake-cuda} holds, compiled once for all
 * tests. Its state is the process's: a test resets it first.
 */
@SuppressWarnings("restricted")
public final class FakeCuda {
  private static final Path SOURCE = Path.of("..", "kernels", "fake-cuda", "fake_cuda.c");
  private static final Path LIBRARY = Path.of("target", "fake-cuda", "libfake_cuda.so");
  private static final Seq<String> KINDS =
      Vector.of("context", "memory", "host", "stream", "event", "library", "graph", "exec", "pool");
  private static final Linker LINKER = Linker.nativeLinker();

  private final Path file;
  private final SymbolLookup symbols;

  private FakeCuda(Path file) {
    this.file = file;
    this.symbols = SymbolLookup.libraryLookup(file, Arena.global());
  }

  /** One recorded launch, whether it ran at once or by a graph. */
  public record Launch(
      String kernel,
      int gridX,
      int gridY,
      int gridZ,
      int threads,
      int sharedBytes,
      long stream,
      boolean replayed,
      ByteBuffer parameters,
      Map<Integer, Integer> attributes) {}

  private static final class Built {
    private static final Either<String, FakeCuda> SHARED = build();
  }

  /** The fake as it is after a start, or a test that is skipped and says why. */
  public static FakeCuda resetOrSkip() {
    FakeCuda fake = builtOrSkip();
    fake.reset();
    return fake;
  }

  /** A library of its own, whose driver was not initialised yet. */
  public static FakeCuda copyOrSkip(Path folder) throws IOException {
    Path copy = folder.resolve("libfake_cuda.so");
    Files.copy(builtOrSkip().file, copy, StandardCopyOption.REPLACE_EXISTING);
    return new FakeCuda(copy.toAbsolutePath());
  }

  private static FakeCuda builtOrSkip() {
    return Built.SHARED.getOrElseThrow(why -> new TestAbortedException(why));
  }

  private static Either<String, FakeCuda> build() {
    try {
      Files.createDirectories(LIBRARY.getParent());
      Path fresh = Files.createTempFile(LIBRARY.getParent(), "libfake_cuda", ".so");
      compile(SOURCE, fresh);
      Files.move(fresh, LIBRARY, StandardCopyOption.REPLACE_EXISTING);
      return Either.right(new FakeCuda(LIBRARY.toAbsolutePath()));
    } catch (IOException | TestAbortedException e) {
      return Either.left("the fake CUDA driver is not built: " + e.getMessage());
    }
  }

  /** Compiles a shared library, or skips the test where no C compiler is. */
  public static void compile(Path source, Path library) {
    try {
      Process compiler =
          new ProcessBuilder(
                  "cc",
                  "-std=gnu11",
                  "-O1",
                  "-g",
                  "-shared",
                  "-fPIC",
                  "-fvisibility=hidden",
                  "-pthread",
                  "-o",
                  library.toString(),
                  source.toString())
              .redirectErrorStream(true)
              .start();
      String said = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (compiler.waitFor() != 0) {
        throw new AssertionError("cc refuses " + source + ":\n" + said);
      }
    } catch (IOException e) {
      throw new TestAbortedException("no C compiler here: " + e.getMessage(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError(e);
    }
  }

  /** Code for {@code CudaLibrary.load}: one line of {@link #kernel} for each kernel. */
  public static byte[] image(int arch, String... kernels) {
    return ("fake kernels\narch " + arch + "\n" + String.join("\n", kernels) + "\nend\n")
        .getBytes(StandardCharsets.US_ASCII);
  }

  /** A kernel of an {@link #image}, with parameters of these sizes, each naturally aligned. */
  public static String kernel(String name, int... sizes) {
    StringBuilder parameters = new StringBuilder();
    int end = 0;
    for (int size : sizes) {
      int alignment = Math.min(size, 64);
      int start = Math.ceilDiv(end, alignment) * alignment;
      parameters.append(parameters.isEmpty() ? "" : ",").append(start).append(':').append(size);
      end = start + size;
    }
    return "kernel " + name + " 32 0 " + parameters;
  }

  public Path file() {
    return file;
  }

  /** The binding under test, over this library. */
  public CudaDriver driver() {
    return CudaDriver.load(file.toString());
  }

  /** Forgets everything: what is alive, was called, was launched and is scripted. */
  public void reset() {
    call("fake_reset", FunctionDescriptor.ofVoid());
  }

  /** So many devices of a compute capability with so much memory. */
  public void devices(int count, int major, int minor, long bytes) {
    call(
        "fake_devices",
        FunctionDescriptor.ofVoid(JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG),
        count,
        major,
        minor,
        bytes);
  }

  /** Lets the call of this index fail, counted from the last reset. */
  public void failAt(long index, int code) {
    call("fake_fail_at", FunctionDescriptor.ofVoid(JAVA_LONG, JAVA_INT), index, code);
  }

  /** Lets the nth call of a symbol from now on fail, counted from 1. */
  public void fail(String symbol, long nth, int code) {
    try (Arena arena = Arena.ofConfined()) {
      call(
          "fake_fail",
          FunctionDescriptor.ofVoid(ADDRESS, JAVA_LONG, JAVA_INT),
          arena.allocateFrom(symbol),
          nth,
          code);
    }
  }

  /** Whether the devices have memory pools. */
  public void pools(boolean on) {
    call("fake_pools", FunctionDescriptor.ofVoid(JAVA_INT), on ? 1 : 0);
  }

  /** How often something that the device may be using was given back while it was busy. */
  public long early() {
    return (long) call("fake_early", FunctionDescriptor.of(JAVA_LONG));
  }

  /**
   * While busy, queries of streams and events say that the device is not ready; waiting for the
   * context or a stream ends it.
   */
  public void busy(boolean on) {
    call("fake_busy", FunctionDescriptor.ofVoid(JAVA_INT), on ? 1 : 0);
  }

  /** Symbols in the order in which they were called. */
  public Seq<String> calls() {
    long count = (long) call("fake_calls", FunctionDescriptor.of(JAVA_LONG));
    FunctionDescriptor type = FunctionDescriptor.of(ADDRESS, JAVA_LONG);
    return Vector.range(0L, count).map(i -> text(call("fake_call", type, i)));
  }

  /** The functions of the driver that the fake has and whose calls it notes. */
  public Seq<String> exported() throws IOException {
    return Vector.ofAll(
            Pattern.compile("EXPORT int (cu\\w+)\\(")
                .matcher(Files.readString(SOURCE))
                .results()
                .map(found -> found.group(1))
                .toList())
        .reject(symbol -> symbol.startsWith("cuGetError"));
  }

  /** What is alive, by kind; kinds of which nothing is alive are left out. */
  public Map<String, Long> live() {
    Map<String, Long> live = LinkedHashMap.empty();
    for (String kind : KINDS) {
      long count = live(kind);
      if (count != 0) {
        live = live.put(kind, count);
      }
    }
    return live;
  }

  private long live(String kind) {
    try (Arena arena = Arena.ofConfined()) {
      return (long)
          call("fake_live", FunctionDescriptor.of(JAVA_LONG, ADDRESS), arena.allocateFrom(kind));
    }
  }

  /**
   * Hands every launch to an observer when it runs, on the thread that launched it.
   *
   * @param stub {@code void (const char *name, const unsigned *geometry, const void *values, size_t
   *     bytes)}
   */
  public void observe(MemorySegment stub) {
    call("fake_observe", FunctionDescriptor.ofVoid(ADDRESS), stub);
  }

  /** The calling thread's context. */
  public long currentContext() {
    return (long) call("fake_current_context", FunctionDescriptor.of(JAVA_LONG));
  }

  /** A context that the host engine made. */
  public long hostContext(int device) {
    return (long) call("fake_host_context", FunctionDescriptor.of(JAVA_LONG, JAVA_INT), device);
  }

  /** A stream that the host engine made. */
  public long hostStream(long context) {
    return (long) call("fake_host_stream", FunctionDescriptor.of(JAVA_LONG, JAVA_LONG), context);
  }

  /** Everything that ran, in order. */
  public Seq<Launch> launches() {
    long count = (long) call("fake_launches", FunctionDescriptor.of(JAVA_LONG));
    return Vector.range(0L, count).map(this::launch);
  }

  /** Whether a device must have ended one launch before it begins another, counted from 0. */
  public boolean ordered(long first, long second) {
    return (int)
            call(
                "fake_ordered",
                FunctionDescriptor.of(JAVA_INT, JAVA_LONG, JAVA_LONG),
                first,
                second)
        != 0;
  }

  private Launch launch(long index) {
    FunctionDescriptor values = FunctionDescriptor.of(ADDRESS, JAVA_LONG);
    int bytes = (int) number(index, 10);
    MemorySegment parameters =
        ((MemorySegment) call("fake_launch_values", values, index)).reinterpret(bytes);
    Map<Integer, Integer> attributes = LinkedHashMap.empty();
    FunctionDescriptor attribute = FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT);
    for (int id = 0; id < 16; id++) {
      long value = (long) call("fake_launch_attribute", attribute, index, id);
      if (value >= 0) {
        attributes = attributes.put(id, (int) value);
      }
    }
    return new Launch(
        text(call("fake_launch_name", values, index)),
        (int) number(index, 0),
        (int) number(index, 1),
        (int) number(index, 2),
        (int) number(index, 3),
        (int) number(index, 6),
        number(index, 7),
        number(index, 8) != 0,
        ByteBuffer.wrap(parameters.toArray(ValueLayout.JAVA_BYTE))
            .order(ByteOrder.nativeOrder())
            .asReadOnlyBuffer()
            .order(ByteOrder.nativeOrder()),
        attributes);
  }

  private long number(long index, int which) {
    return (long)
        call(
            "fake_launch_number",
            FunctionDescriptor.of(JAVA_LONG, JAVA_LONG, JAVA_INT),
            index,
            which);
  }

  private static String text(Object pointer) {
    return ((MemorySegment) pointer).reinterpret(256).getString(0);
  }

  @SuppressWarnings("NullAway") // a function without result gives null, which nobody reads
  private Object call(String name, FunctionDescriptor type, Object... arguments) {
    MethodHandle function = LINKER.downcallHandle(symbols.findOrThrow(name), type);
    try {
      return function.invokeWithArguments(arguments);
    } catch (Throwable e) {
      throw new AssertionError(name, e);
    }
  }
}

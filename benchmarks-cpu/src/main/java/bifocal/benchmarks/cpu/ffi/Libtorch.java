package bifocal.benchmarks.cpu.ffi;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_DOUBLE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;
import java.io.IOException;
import java.lang.foreign.AddressLayout;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Properties;

/**
 * PyTorch's C++ library through the plain C functions that its ahead-of-time compiled models call.
 * Once loaded it stays.
 */
@SuppressWarnings("restricted")
public final class Libtorch {
  private static final String LIBRARY = "libtorch";
  private static final Linker LINKER = Linker.nativeLinker();
  private static final int RANK = 4;
  private static final AddressLayout STRIDES =
      ADDRESS.withTargetLayout(MemoryLayout.sequenceLayout(RANK, JAVA_LONG));

  private final String version;
  private final int cpu;
  private final int float32;
  private final int bfloat16;
  private final MethodHandle create;
  private final MethodHandle delete;
  private final MethodHandle dataPointer;
  private final MethodHandle strides;
  private final MethodHandle attention;
  private final MethodHandle setThreads;

  private Libtorch(String version, SymbolLookup library) {
    this.version = version;
    this.cpu = constant(library, "aoti_torch_device_type_cpu");
    this.float32 = constant(library, "aoti_torch_dtype_float32");
    this.bfloat16 = constant(library, "aoti_torch_dtype_bfloat16");
    this.create =
        function(
            library,
            "aoti_torch_create_tensor_from_blob",
            FunctionDescriptor.of(
                JAVA_INT, JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS, JAVA_LONG, JAVA_INT, JAVA_INT,
                JAVA_INT, ADDRESS));
    this.delete =
        function(
            library, "aoti_torch_delete_tensor_object", FunctionDescriptor.of(JAVA_INT, JAVA_LONG));
    this.dataPointer =
        function(
            library,
            "aoti_torch_get_data_ptr",
            FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS));
    this.strides =
        function(
            library, "aoti_torch_get_strides", FunctionDescriptor.of(JAVA_INT, JAVA_LONG, ADDRESS));
    this.attention =
        function(
            library,
            "aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu",
            FunctionDescriptor.of(
                JAVA_INT,
                JAVA_LONG,
                JAVA_LONG,
                JAVA_LONG,
                JAVA_DOUBLE,
                JAVA_INT,
                ADDRESS,
                ADDRESS,
                ADDRESS,
                ADDRESS));
    this.setThreads =
        function(library, "_ZN2at15set_num_threadsEi", FunctionDescriptor.ofVoid(JAVA_INT));
  }

  /** The library in a folder of peers, absent where it is not there. */
  public static Option<Libtorch> in(Path peers) {
    Path folder = peers.resolve("pytorch/cpu/linux-x86_64");
    if (!Files.isRegularFile(folder.resolve("libtorch_cpu.so"))) {
      return Option.none();
    }
    for (String first : new String[] {"libgomp-98b21ff3.so.1", "libc10.so"}) {
      if (Files.isRegularFile(folder.resolve(first))) {
        open(folder.resolve(first));
      }
    }
    return Option.some(new Libtorch(version(peers), open(folder.resolve("libtorch_cpu.so"))));
  }

  private static SymbolLookup open(Path file) {
    try {
      return SymbolLookup.libraryLookup(file.toAbsolutePath(), Arena.global());
    } catch (IllegalArgumentException e) {
      throw BifocalException.of(
              ErrorCode.NATIVE_MISSING, file.toString(), "cannot be loaded", "a library that loads")
          .causedBy(e);
    }
  }

  private static String version(Path peers) {
    Properties properties = new Properties();
    try (var file = Files.newInputStream(peers.resolve("native/lib/pytorch.properties"))) {
      properties.load(file);
    } catch (IOException e) {
      return "unknown";
    }
    return properties.getProperty("version", "unknown");
  }

  /** Its version. */
  public String version() {
    return version;
  }

  /** {@code void at::set_num_threads(int)}. */
  public void useThreads(int threads) {
    try {
      setThreads.invokeExact(threads);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /**
   * {@code AOTITorchError aoti_torch_create_tensor_from_blob(void *data, int64_t ndim, const
   * int64_t *sizes, const int64_t *strides, int64_t offset, int32_t dtype, int32_t device_type,
   * int32_t device_index, AtenTensorHandle *)}: a tensor of four dimensions over memory of the
   * caller's.
   *
   * @return its handle, for {@link #delete}
   */
  public long tensor(MemorySegment data, DType type, long[] sizes, long[] strides) {
    int dtype = type == DType.FP32 ? float32 : bfloat16;
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment handle = arena.allocate(JAVA_LONG);
      requireSuccess(
          (int)
              create.invokeExact(
                  data.address(),
                  (long) RANK,
                  arena.allocateFrom(JAVA_LONG, sizes),
                  arena.allocateFrom(JAVA_LONG, strides),
                  0L,
                  dtype,
                  cpu,
                  0,
                  handle));
      return handle.get(JAVA_LONG, 0);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /** {@code AOTITorchError aoti_torch_delete_tensor_object(AtenTensorHandle)}. */
  public void delete(long tensor) {
    try {
      requireSuccess((int) delete.invokeExact(tensor));
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /**
   * {@code AOTITorchError aoti_torch_cpu__scaled_dot_product_flash_attention_for_cpu(query, key,
   * value, double dropout_p, int32_t is_causal, AtenTensorHandle *attn_mask, double *scale,
   * AtenTensorHandle *out, AtenTensorHandle *lse)}.
   *
   * @param mask handle of an additive mask, absent for none
   * @return handle of the output
   */
  public long attend(long q, long k, long v, boolean causal, Option<Long> mask) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment results = arena.allocate(JAVA_LONG, 2);
      MemorySegment maskAt =
          mask.isEmpty() ? MemorySegment.NULL : arena.allocateFrom(JAVA_LONG, mask.get());
      requireSuccess(
          (int)
              attention.invokeExact(
                  q,
                  k,
                  v,
                  0.0,
                  causal ? 1 : 0,
                  maskAt,
                  MemorySegment.NULL,
                  results,
                  results.asSlice(8)));
      delete(results.getAtIndex(JAVA_LONG, 1));
      return results.getAtIndex(JAVA_LONG, 0);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /** {@code AOTITorchError aoti_torch_get_data_ptr(AtenTensorHandle, void **)}. */
  public MemorySegment data(long tensor, long bytes) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pointer = arena.allocate(ADDRESS);
      requireSuccess((int) dataPointer.invokeExact(tensor, pointer));
      return pointer.get(ADDRESS, 0).reinterpret(bytes);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  /** {@code AOTITorchError aoti_torch_get_strides(AtenTensorHandle, int64_t **)}. */
  public long[] strides(long tensor) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment pointer = arena.allocate(ADDRESS);
      requireSuccess((int) strides.invokeExact(tensor, pointer));
      return pointer.get(STRIDES, 0).toArray(JAVA_LONG);
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  private static void requireSuccess(int result) {
    if (result != 0) {
      throw Calls.failed(LIBRARY, result);
    }
  }

  private static int constant(SymbolLookup library, String name) {
    MethodHandle function = function(library, name, FunctionDescriptor.of(JAVA_INT));
    try {
      return (int) function.invokeExact();
    } catch (Throwable thrown) {
      throw Calls.unexpected(LIBRARY, thrown);
    }
  }

  private static MethodHandle function(SymbolLookup library, String name, FunctionDescriptor type) {
    return LINKER.downcallHandle(library.findOrThrow(name), type);
  }
}

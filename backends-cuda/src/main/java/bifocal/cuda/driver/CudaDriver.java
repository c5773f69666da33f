package bifocal.cuda.driver;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The functions of {@code libcuda}. Either every function is there or nothing is bound. A library
 * stays loaded as long as the JVM.
 *
 * <p>Every method is one function and returns its {@code CUresult}; {@link CudaContext} turns that
 * into exceptions. Handles and device addresses are numbers; host memory is passed as segments, so
 * that it cannot be released while a call runs.
 */
@SuppressWarnings("restricted")
public final class CudaDriver {
  /** System property that names a library to use instead of the system's driver. */
  public static final String PROPERTY = "bifocal.cuda.library";

  /** What the system's loader is asked for. */
  public static final String LIBRARY = "libcuda.so.1";

  private static final int SUCCESS = 0;
  private static final int LONGEST_TEXT = 1024;
  private static final Linker LINKER = Linker.nativeLinker();
  private static final Map<String, CudaDriver> LOADED = new ConcurrentHashMap<>();

  private final String where;
  private final int version;
  private final MethodHandle init;
  private final MethodHandle driverGetVersion;
  private final MethodHandle deviceGetCount;
  private final MethodHandle deviceGet;
  private final MethodHandle deviceGetName;
  private final MethodHandle deviceTotalMem;
  private final MethodHandle deviceGetAttribute;
  private final MethodHandle primaryContextRetain;
  private final MethodHandle primaryContextRelease;
  private final MethodHandle contextGetCurrent;
  private final MethodHandle contextSetCurrent;
  private final MethodHandle contextGetDevice;
  private final MethodHandle contextSynchronize;
  private final MethodHandle memoryAllocate;
  private final MethodHandle memoryFree;
  private final MethodHandle memoryGetInfo;
  private final MethodHandle poolCreate;
  private final MethodHandle poolDestroy;
  private final MethodHandle poolSetAttribute;
  private final MethodHandle poolGetAttribute;
  private final MethodHandle allocateFromPool;
  private final MethodHandle freeInOrder;
  private final MethodHandle hostAllocate;
  private final MethodHandle hostFree;
  private final MethodHandle pointerGetAttribute;
  private final MethodHandle copyToDevice;
  private final MethodHandle copyToHost;
  private final MethodHandle copyOnDevice;
  private final MethodHandle fillBytes;
  private final MethodHandle fillWords;
  private final MethodHandle streamCreate;
  private final MethodHandle streamDestroy;
  private final MethodHandle streamSynchronize;
  private final MethodHandle streamQuery;
  private final MethodHandle streamWaitEvent;
  private final MethodHandle streamGetContext;
  private final MethodHandle streamIsCapturing;
  private final MethodHandle eventCreate;
  private final MethodHandle eventDestroy;
  private final MethodHandle eventRecord;
  private final MethodHandle eventQuery;
  private final MethodHandle eventSynchronize;
  private final MethodHandle eventElapsedTime;
  private final MethodHandle libraryLoadData;
  private final MethodHandle libraryUnload;
  private final MethodHandle libraryGetKernel;
  private final MethodHandle kernelGetFunction;
  private final MethodHandle functionLoad;
  private final MethodHandle kernelGetParamInfo;
  private final MethodHandle kernelGetAttribute;
  private final MethodHandle kernelSetAttribute;
  private final MethodHandle occupancy;
  private final MethodHandle launchKernel;
  private final MethodHandle streamBeginCapture;
  private final MethodHandle streamEndCapture;
  private final MethodHandle graphInstantiate;
  private final MethodHandle graphUpload;
  private final MethodHandle graphLaunch;
  private final MethodHandle graphDestroy;
  private final MethodHandle graphExecDestroy;
  private final MethodHandle tensorMapEncodeTiled;
  private final MethodHandle errorName;
  private final MethodHandle errorText;

  private CudaDriver(SymbolLookup library, String where) {
    this.where = where;
    Linking link = new Linking(library, where);
    init = link.function("cuInit", JAVA_INT);
    driverGetVersion = link.function("cuDriverGetVersion", ADDRESS);
    deviceGetCount = link.function("cuDeviceGetCount", ADDRESS);
    deviceGet = link.function("cuDeviceGet", ADDRESS, JAVA_INT);
    deviceGetName = link.function("cuDeviceGetName", ADDRESS, JAVA_INT, JAVA_INT);
    deviceTotalMem = link.function("cuDeviceTotalMem_v2", ADDRESS, JAVA_INT);
    deviceGetAttribute = link.function("cuDeviceGetAttribute", ADDRESS, JAVA_INT, JAVA_INT);
    primaryContextRetain = link.function("cuDevicePrimaryCtxRetain", ADDRESS, JAVA_INT);
    primaryContextRelease = link.function("cuDevicePrimaryCtxRelease_v2", JAVA_INT);
    contextGetCurrent = link.function("cuCtxGetCurrent", ADDRESS);
    contextSetCurrent = link.function("cuCtxSetCurrent", JAVA_LONG);
    contextGetDevice = link.function("cuCtxGetDevice", ADDRESS);
    contextSynchronize = link.function("cuCtxSynchronize");
    memoryAllocate = link.function("cuMemAlloc_v2", ADDRESS, JAVA_LONG);
    memoryFree = link.function("cuMemFree_v2", JAVA_LONG);
    memoryGetInfo = link.function("cuMemGetInfo_v2", ADDRESS, ADDRESS);
    poolCreate = link.function("cuMemPoolCreate", ADDRESS, ADDRESS);
    poolDestroy = link.function("cuMemPoolDestroy", JAVA_LONG);
    poolSetAttribute = link.function("cuMemPoolSetAttribute", JAVA_LONG, JAVA_INT, ADDRESS);
    poolGetAttribute = link.function("cuMemPoolGetAttribute", JAVA_LONG, JAVA_INT, ADDRESS);
    allocateFromPool =
        link.function("cuMemAllocFromPoolAsync", ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    freeInOrder = link.function("cuMemFreeAsync", JAVA_LONG, JAVA_LONG);
    hostAllocate = link.function("cuMemHostAlloc", ADDRESS, JAVA_LONG, JAVA_INT);
    hostFree = link.function("cuMemFreeHost", JAVA_LONG);
    pointerGetAttribute = link.function("cuPointerGetAttribute", ADDRESS, JAVA_INT, JAVA_LONG);
    copyToDevice =
        link.function("cuMemcpyHtoDAsync_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    copyToHost = link.function("cuMemcpyDtoHAsync_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    copyOnDevice =
        link.function("cuMemcpyDtoDAsync_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    fillBytes = link.function("cuMemsetD8Async", JAVA_LONG, JAVA_BYTE, JAVA_LONG, JAVA_LONG);
    fillWords = link.function("cuMemsetD32Async", JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG);
    streamCreate = link.function("cuStreamCreate", ADDRESS, JAVA_INT);
    streamDestroy = link.function("cuStreamDestroy_v2", JAVA_LONG);
    streamSynchronize = link.function("cuStreamSynchronize", JAVA_LONG);
    streamQuery = link.function("cuStreamQuery", JAVA_LONG);
    streamWaitEvent = link.function("cuStreamWaitEvent", JAVA_LONG, JAVA_LONG, JAVA_INT);
    streamGetContext = link.function("cuStreamGetCtx", JAVA_LONG, ADDRESS);
    streamIsCapturing = link.function("cuStreamIsCapturing", JAVA_LONG, ADDRESS);
    eventCreate = link.function("cuEventCreate", ADDRESS, JAVA_INT);
    eventDestroy = link.function("cuEventDestroy_v2", JAVA_LONG);
    eventRecord = link.function("cuEventRecord", JAVA_LONG, JAVA_LONG);
    eventQuery = link.function("cuEventQuery", JAVA_LONG);
    eventSynchronize = link.function("cuEventSynchronize", JAVA_LONG);
    eventElapsedTime =
        link.either("cuEventElapsedTime_v2", "cuEventElapsedTime", ADDRESS, JAVA_LONG, JAVA_LONG);
    libraryLoadData =
        link.function(
            "cuLibraryLoadData",
            ADDRESS,
            ADDRESS,
            JAVA_LONG,
            JAVA_LONG,
            JAVA_INT,
            JAVA_LONG,
            JAVA_LONG,
            JAVA_INT);
    libraryUnload = link.function("cuLibraryUnload", JAVA_LONG);
    libraryGetKernel = link.function("cuLibraryGetKernel", ADDRESS, JAVA_LONG, ADDRESS);
    kernelGetFunction = link.function("cuKernelGetFunction", ADDRESS, JAVA_LONG);
    functionLoad = link.function("cuFuncLoad", JAVA_LONG);
    kernelGetParamInfo =
        link.function("cuKernelGetParamInfo", JAVA_LONG, JAVA_LONG, ADDRESS, ADDRESS);
    kernelGetAttribute =
        link.function("cuKernelGetAttribute", ADDRESS, JAVA_INT, JAVA_LONG, JAVA_INT);
    kernelSetAttribute =
        link.function("cuKernelSetAttribute", JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_INT);
    occupancy =
        link.function(
            "cuOccupancyMaxActiveBlocksPerMultiprocessor", ADDRESS, JAVA_LONG, JAVA_INT, JAVA_LONG);
    launchKernel = link.function("cuLaunchKernelEx", ADDRESS, JAVA_LONG, ADDRESS, JAVA_LONG);
    streamBeginCapture = link.function("cuStreamBeginCapture_v2", JAVA_LONG, JAVA_INT);
    streamEndCapture = link.function("cuStreamEndCapture", JAVA_LONG, ADDRESS);
    graphInstantiate = link.function("cuGraphInstantiateWithFlags", ADDRESS, JAVA_LONG, JAVA_LONG);
    graphUpload = link.function("cuGraphUpload", JAVA_LONG, JAVA_LONG);
    graphLaunch = link.function("cuGraphLaunch", JAVA_LONG, JAVA_LONG);
    graphDestroy = link.function("cuGraphDestroy", JAVA_LONG);
    graphExecDestroy = link.function("cuGraphExecDestroy", JAVA_LONG);
    tensorMapEncodeTiled =
        link.function(
            "cuTensorMapEncodeTiled",
            ADDRESS,
            JAVA_INT,
            JAVA_INT,
            JAVA_LONG,
            ADDRESS,
            ADDRESS,
            ADDRESS,
            ADDRESS,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT,
            JAVA_INT);
    errorName = link.function("cuGetErrorName", JAVA_INT, ADDRESS);
    errorText = link.function("cuGetErrorString", JAVA_INT, ADDRESS);
    link.requireComplete();
    this.version = initialised();
  }

  /**
   * The library that {@link #PROPERTY} names, else the system's {@value #LIBRARY}.
   *
   * @throws BifocalException {@code NATIVE_MISSING} that says what was looked for where, and
   *     whether it was not found, did not load, is too old, or finds no device
   */
  public static CudaDriver load() {
    return load(System.getProperty(PROPERTY, LIBRARY));
  }

  /**
   * Loads a library by name, as the system's loader finds it, or by path if the name has a slash.
   *
   * @throws BifocalException as {@link #load()}
   */
  public static CudaDriver load(String name) {
    return LOADED.computeIfAbsent(name, CudaDriver::open);
  }

  private static CudaDriver open(String name) {
    if (!CudaDriver.class.getModule().isNativeAccessEnabled()) {
      throw BifocalException.of(
              ErrorCode.NATIVE_MISSING, "the CUDA driver", "native access is off", "on")
          .withRemedy("run java with --enable-native-access=ALL-UNNAMED");
    }
    boolean path = name.contains("/");
    if (path && !Files.isRegularFile(Path.of(name))) {
      throw missing(name + " is not there", "no such file")
          .withRemedy("unset -D" + PROPERTY + " to use the system's driver");
    }
    return new CudaDriver(path ? byPath(Path.of(name)) : byName(name), name);
  }

  private static SymbolLookup byPath(Path file) {
    try {
      return SymbolLookup.libraryLookup(file.toAbsolutePath(), Arena.global());
    } catch (IllegalArgumentException e) {
      throw missing(file + " cannot be loaded", loaderText(file, e)).causedBy(e);
    }
  }

  private static SymbolLookup byName(String name) {
    try {
      return SymbolLookup.libraryLookup(name, Arena.global());
    } catch (IllegalArgumentException e) {
      throw missing(name + " was not found by the system's loader", String.valueOf(e.getMessage()))
          .withRemedy(
              "install the NVIDIA driver, or name its library with -D"
                  + PROPERTY
                  + "=PATH (to ./bifocal in BIFOCAL_JAVA_OPTIONS)")
          .causedBy(e);
    }
  }

  /** What the system's loader says, which the first attempt does not tell. */
  private static String loaderText(Path file, IllegalArgumentException first) {
    try {
      System.load(file.toAbsolutePath().toString());
      return String.valueOf(first.getMessage());
    } catch (UnsatisfiedLinkError e) {
      return String.valueOf(e.getMessage());
    }
  }

  private int initialised() {
    try (Arena arena = Arena.ofConfined()) {
      int code = init(0);
      if (code != SUCCESS) {
        CudaError error = error(code);
        throw missing(where + " was loaded, but cuInit failed", error.toString())
            .withRemedy(
                code == CudaError.NO_DEVICE
                    ? "check that the device is visible: nvidia-smi, CUDA_VISIBLE_DEVICES"
                    : "check the driver: nvidia-smi");
      }
      MemorySegment out = arena.allocate(JAVA_INT);
      int queried = driverGetVersion(out);
      if (queried != SUCCESS) {
        throw missing(where + " does not tell its version", error(queried).toString());
      }
      return out.get(JAVA_INT, 0);
    }
  }

  /** The library's name or path, as it was loaded. */
  public String where() {
    return where;
  }

  /** Newest CUDA version that the driver serves, for instance {@code 13.0}. */
  public String version() {
    return version / 1000 + "." + version % 1000 / 10;
  }

  /**
   * The devices that the driver sees, in its order.
   *
   * @throws BifocalException {@code NATIVE_FAILED}
   */
  public Seq<CudaDevice> devices() {
    return CudaDevice.all(this);
  }

  /** The driver's name and text of a code; both say so when it does not know the code. */
  public CudaError error(int code) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ADDRESS);
      String name = errorName(code, out) == SUCCESS ? text(out) : "unknown to the driver";
      String text = errorText(code, out) == SUCCESS ? text(out) : "no text";
      return new CudaError(code, name, text);
    }
  }

  /** For calls that belong to no context. */
  void require(String function, int code) {
    if (code != SUCCESS) {
      throw error(code).failure(function);
    }
  }

  private static String text(MemorySegment out) {
    return out.get(ADDRESS, 0).reinterpret(LONGEST_TEXT).getString(0);
  }

  /** Host memory that the driver allocated; it lives as long as the arena. */
  static MemorySegment segment(long address, long bytes, Arena arena) {
    return MemorySegment.ofAddress(address).reinterpret(bytes, arena, null);
  }

  /** {@code CUresult cuInit(unsigned int flags)}. */
  int init(int flags) {
    try {
      return (int) init.invokeExact(flags);
    } catch (Throwable thrown) {
      throw unexpected("cuInit", thrown);
    }
  }

  /** {@code CUresult cuDriverGetVersion(int *version)}. */
  int driverGetVersion(MemorySegment version) {
    try {
      return (int) driverGetVersion.invokeExact(version);
    } catch (Throwable thrown) {
      throw unexpected("cuDriverGetVersion", thrown);
    }
  }

  /** {@code CUresult cuDeviceGetCount(int *count)}. */
  int deviceGetCount(MemorySegment count) {
    try {
      return (int) deviceGetCount.invokeExact(count);
    } catch (Throwable thrown) {
      throw unexpected("cuDeviceGetCount", thrown);
    }
  }

  /** {@code CUresult cuDeviceGet(CUdevice *device, int ordinal)}. */
  int deviceGet(MemorySegment device, int ordinal) {
    try {
      return (int) deviceGet.invokeExact(device, ordinal);
    } catch (Throwable thrown) {
      throw unexpected("cuDeviceGet", thrown);
    }
  }

  /** {@code CUresult cuDeviceGetName(char *name, int length, CUdevice device)}. */
  int deviceGetName(MemorySegment name, int length, int device) {
    try {
      return (int) deviceGetName.invokeExact(name, length, device);
    } catch (Throwable thrown) {
      throw unexpected("cuDeviceGetName", thrown);
    }
  }

  /** {@code CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)}. */
  int deviceTotalMem(MemorySegment bytes, int device) {
    try {
      return (int) deviceTotalMem.invokeExact(bytes, device);
    } catch (Throwable thrown) {
      throw unexpected("cuDeviceTotalMem_v2", thrown);
    }
  }

  /**
   * {@code CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice
   * device)}.
   */
  int deviceGetAttribute(MemorySegment value, int attribute, int device) {
    try {
      return (int) deviceGetAttribute.invokeExact(value, attribute, device);
    } catch (Throwable thrown) {
      throw unexpected("cuDeviceGetAttribute", thrown);
    }
  }

  /** {@code CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)}. */
  int primaryContextRetain(MemorySegment context, int device) {
    try {
      return (int) primaryContextRetain.invokeExact(context, device);
    } catch (Throwable thrown) {
      throw unexpected("cuDevicePrimaryCtxRetain", thrown);
    }
  }

  /** {@code CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)}. */
  int primaryContextRelease(int device) {
    try {
      return (int) primaryContextRelease.invokeExact(device);
    } catch (Throwable thrown) {
      throw unexpected("cuDevicePrimaryCtxRelease_v2", thrown);
    }
  }

  /** {@code CUresult cuCtxGetCurrent(CUcontext *context)}. */
  int contextGetCurrent(MemorySegment context) {
    try {
      return (int) contextGetCurrent.invokeExact(context);
    } catch (Throwable thrown) {
      throw unexpected("cuCtxGetCurrent", thrown);
    }
  }

  /** {@code CUresult cuCtxSetCurrent(CUcontext context)}. */
  int contextSetCurrent(long context) {
    try {
      return (int) contextSetCurrent.invokeExact(context);
    } catch (Throwable thrown) {
      throw unexpected("cuCtxSetCurrent", thrown);
    }
  }

  /** {@code CUresult cuCtxGetDevice(CUdevice *device)}. */
  int contextGetDevice(MemorySegment device) {
    try {
      return (int) contextGetDevice.invokeExact(device);
    } catch (Throwable thrown) {
      throw unexpected("cuCtxGetDevice", thrown);
    }
  }

  /** {@code CUresult cuCtxSynchronize(void)}. */
  int contextSynchronize() {
    try {
      return (int) contextSynchronize.invokeExact();
    } catch (Throwable thrown) {
      throw unexpected("cuCtxSynchronize", thrown);
    }
  }

  /** {@code CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes)}. */
  int memoryAllocate(MemorySegment address, long bytes) {
    try {
      return (int) memoryAllocate.invokeExact(address, bytes);
    } catch (Throwable thrown) {
      throw unexpected("cuMemAlloc_v2", thrown);
    }
  }

  /** {@code CUresult cuMemFree_v2(CUdeviceptr address)}. */
  int memoryFree(long address) {
    try {
      return (int) memoryFree.invokeExact(address);
    } catch (Throwable thrown) {
      throw unexpected("cuMemFree_v2", thrown);
    }
  }

  /** {@code CUresult cuMemGetInfo_v2(size_t *free, size_t *total)}. */
  int memoryGetInfo(MemorySegment free, MemorySegment total) {
    try {
      return (int) memoryGetInfo.invokeExact(free, total);
    } catch (Throwable thrown) {
      throw unexpected("cuMemGetInfo_v2", thrown);
    }
  }

  /** {@code CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)}. */
  int poolCreate(MemorySegment pool, MemorySegment properties) {
    try {
      return (int) poolCreate.invokeExact(pool, properties);
    } catch (Throwable thrown) {
      throw unexpected("cuMemPoolCreate", thrown);
    }
  }

  /** {@code CUresult cuMemPoolDestroy(CUmemoryPool pool)}. */
  int poolDestroy(long pool) {
    try {
      return (int) poolDestroy.invokeExact(pool);
    } catch (Throwable thrown) {
      throw unexpected("cuMemPoolDestroy", thrown);
    }
  }

  /**
   * {@code CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void
   * *value)}.
   */
  int poolSetAttribute(long pool, int attribute, MemorySegment value) {
    try {
      return (int) poolSetAttribute.invokeExact(pool, attribute, value);
    } catch (Throwable thrown) {
      throw unexpected("cuMemPoolSetAttribute", thrown);
    }
  }

  /**
   * {@code CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void
   * *value)}.
   */
  int poolGetAttribute(long pool, int attribute, MemorySegment value) {
    try {
      return (int) poolGetAttribute.invokeExact(pool, attribute, value);
    } catch (Throwable thrown) {
      throw unexpected("cuMemPoolGetAttribute", thrown);
    }
  }

  /**
   * {@code CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t bytes, CUmemoryPool pool,
   * CUstream stream)}.
   */
  int allocateFromPool(MemorySegment address, long bytes, long pool, long stream) {
    try {
      return (int) allocateFromPool.invokeExact(address, bytes, pool, stream);
    } catch (Throwable thrown) {
      throw unexpected("cuMemAllocFromPoolAsync", thrown);
    }
  }

  /** {@code CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)}. */
  int freeInOrder(long address, long stream) {
    try {
      return (int) freeInOrder.invokeExact(address, stream);
    } catch (Throwable thrown) {
      throw unexpected("cuMemFreeAsync", thrown);
    }
  }

  /** {@code CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)}. */
  int hostAllocate(MemorySegment address, long bytes, int flags) {
    try {
      return (int) hostAllocate.invokeExact(address, bytes, flags);
    } catch (Throwable thrown) {
      throw unexpected("cuMemHostAlloc", thrown);
    }
  }

  /** {@code CUresult cuMemFreeHost(void *address)}. */
  int hostFree(long address) {
    try {
      return (int) hostFree.invokeExact(address);
    } catch (Throwable thrown) {
      throw unexpected("cuMemFreeHost", thrown);
    }
  }

  /**
   * {@code CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr
   * address)}.
   */
  int pointerGetAttribute(MemorySegment value, int attribute, long address) {
    try {
      return (int) pointerGetAttribute.invokeExact(value, attribute, address);
    } catch (Throwable thrown) {
      throw unexpected("cuPointerGetAttribute", thrown);
    }
  }

  /**
   * {@code CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream
   * stream)}.
   */
  int copyToDevice(long to, long from, long bytes, long stream) {
    try {
      return (int) copyToDevice.invokeExact(to, from, bytes, stream);
    } catch (Throwable thrown) {
      throw unexpected("cuMemcpyHtoDAsync_v2", thrown);
    }
  }

  /**
   * {@code CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream
   * stream)}.
   */
  int copyToHost(long to, long from, long bytes, long stream) {
    try {
      return (int) copyToHost.invokeExact(to, from, bytes, stream);
    } catch (Throwable thrown) {
      throw unexpected("cuMemcpyDtoHAsync_v2", thrown);
    }
  }

  /**
   * {@code CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream
   * stream)}.
   */
  int copyOnDevice(long to, long from, long bytes, long stream) {
    try {
      return (int) copyOnDevice.invokeExact(to, from, bytes, stream);
    } catch (Throwable thrown) {
      throw unexpected("cuMemcpyDtoDAsync_v2", thrown);
    }
  }

  /**
   * {@code CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream
   * stream)}.
   */
  int fillBytes(long to, byte value, long bytes, long stream) {
    try {
      return (int) fillBytes.invokeExact(to, value, bytes, stream);
    } catch (Throwable thrown) {
      throw unexpected("cuMemsetD8Async", thrown);
    }
  }

  /**
   * {@code CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream
   * stream)}.
   */
  int fillWords(long to, int value, long count, long stream) {
    try {
      return (int) fillWords.invokeExact(to, value, count, stream);
    } catch (Throwable thrown) {
      throw unexpected("cuMemsetD32Async", thrown);
    }
  }

  /** {@code CUresult cuStreamCreate(CUstream *stream, unsigned int flags)}. */
  int streamCreate(MemorySegment stream, int flags) {
    try {
      return (int) streamCreate.invokeExact(stream, flags);
    } catch (Throwable thrown) {
      throw unexpected("cuStreamCreate", thrown);
    }
  }

  /** {@code CUresult cuStreamDestroy_v2(CUstream stream)}. */
  int streamDestroy(long stream) {
    try {
      return (int) streamDestroy.invokeExact(stream);
    } catch (Throwable thrown) {
      throw unexpected("cuStreamDestroy_v2", thrown);
    }
  }

  /** {@code CUresult cuStreamSynchronize(CUstream stream)}. */
  int streamSynchronize(long stream) {
    try {
      return (int) streamSynchronize.invokeExact(stream);
    } catch (Throwable thrown) {
      throw unexpected("cuStreamSynchronize", thrown);
    }
  }

  /** {@code CUresult cuStreamQuery(CUstream stream)}. */
  int streamQuery(long stream) {
    try {
      return (int) streamQuery.invokeExact(stream);
    } catch (Throwable thrown) {
      throw unexpected("cuStreamQuery", thrown);
    }
  }

  /** {@code CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags)}. */
  int streamWaitEvent(long stream, long event, int flags) {
    try {
      return (int) streamWaitEvent.invokeExact(stream, event, flags);
    } catch (Throwable thrown) {
      throw unexpected("cuStreamWaitEvent", thrown);
    }
  }

  /** {@code CUresult cuStreamGetCtx(CUstream stream, CUcontext *context)}. */
  int streamGetContext(long stream, MemorySegment context) {
    try {
      return (int) streamGetContext.invokeExact(stream, context);
    } catch (Throwable thrown) {
      throw unexpected("cuStreamGetCtx", thrown);
    }
  }

  /** {@code CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)}. */
  int streamIsCapturing(long stream, MemorySegment status) {
    try {
      return (int) streamIsCapturing.invokeExact(stream, status);
    } catch (Throwable thrown) {
      throw unexpected("cuStreamIsCapturing", thrown);
    }
  }

  /** {@code CUresult cuEventCreate(CUevent *event, unsigned int flags)}. */
  int eventCreate(MemorySegment event, int flags) {
    try {
      return (int) eventCreate.invokeExact(event, flags);
    } catch (Throwable thrown) {
      throw unexpected("cuEventCreate", thrown);
    }
  }

  /** {@code CUresult cuEventDestroy_v2(CUevent event)}. */
  int eventDestroy(long event) {
    try {
      return (int) eventDestroy.invokeExact(event);
    } catch (Throwable thrown) {
      throw unexpected("cuEventDestroy_v2", thrown);
    }
  }

  /** {@code CUresult cuEventRecord(CUevent event, CUstream stream)}. */
  int eventRecord(long event, long stream) {
    try {
      return (int) eventRecord.invokeExact(event, stream);
    } catch (Throwable thrown) {
      throw unexpected("cuEventRecord", thrown);
    }
  }

  /** {@code CUresult cuEventQuery(CUevent event)}. */
  int eventQuery(long event) {
    try {
      return (int) eventQuery.invokeExact(event);
    } catch (Throwable thrown) {
      throw unexpected("cuEventQuery", thrown);
    }
  }

  /** {@code CUresult cuEventSynchronize(CUevent event)}. */
  int eventSynchronize(long event) {
    try {
      return (int) eventSynchronize.invokeExact(event);
    } catch (Throwable thrown) {
      throw unexpected("cuEventSynchronize", thrown);
    }
  }

  /** {@code CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)}. */
  int eventElapsedTime(MemorySegment milliseconds, long start, long end) {
    try {
      return (int) eventElapsedTime.invokeExact(milliseconds, start, end);
    } catch (Throwable thrown) {
      throw unexpected("cuEventElapsedTime_v2", thrown);
    }
  }

  /**
   * {@code CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option
   * *jitOptions, void **jitValues, unsigned int jitCount, CUlibraryOption *options, void **values,
   * unsigned int count)}.
   */
  int libraryLoadData(
      MemorySegment library,
      MemorySegment code,
      long jitOptions,
      long jitValues,
      int jitCount,
      long options,
      long values,
      int count) {
    try {
      return (int)
          libraryLoadData.invokeExact(
              library, code, jitOptions, jitValues, jitCount, options, values, count);
    } catch (Throwable thrown) {
      throw unexpected("cuLibraryLoadData", thrown);
    }
  }

  /** {@code CUresult cuLibraryUnload(CUlibrary library)}. */
  int libraryUnload(long library) {
    try {
      return (int) libraryUnload.invokeExact(library);
    } catch (Throwable thrown) {
      throw unexpected("cuLibraryUnload", thrown);
    }
  }

  /** {@code CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)}. */
  int libraryGetKernel(MemorySegment kernel, long library, MemorySegment name) {
    try {
      return (int) libraryGetKernel.invokeExact(kernel, library, name);
    } catch (Throwable thrown) {
      throw unexpected("cuLibraryGetKernel", thrown);
    }
  }

  /** {@code CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)}. */
  int kernelGetFunction(MemorySegment function, long kernel) {
    try {
      return (int) kernelGetFunction.invokeExact(function, kernel);
    } catch (Throwable thrown) {
      throw unexpected("cuKernelGetFunction", thrown);
    }
  }

  /** {@code CUresult cuFuncLoad(CUfunction function)}. */
  int functionLoad(long function) {
    try {
      return (int) functionLoad.invokeExact(function);
    } catch (Throwable thrown) {
      throw unexpected("cuFuncLoad", thrown);
    }
  }

  /**
   * {@code CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t *offset, size_t
   * *bytes)}.
   */
  int kernelGetParamInfo(long kernel, long index, MemorySegment offset, MemorySegment bytes) {
    try {
      return (int) kernelGetParamInfo.invokeExact(kernel, index, offset, bytes);
    } catch (Throwable thrown) {
      throw unexpected("cuKernelGetParamInfo", thrown);
    }
  }

  /**
   * {@code CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel
   * kernel, CUdevice device)}.
   */
  int kernelGetAttribute(MemorySegment value, int attribute, long kernel, int device) {
    try {
      return (int) kernelGetAttribute.invokeExact(value, attribute, kernel, device);
    } catch (Throwable thrown) {
      throw unexpected("cuKernelGetAttribute", thrown);
    }
  }

  /**
   * {@code CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel
   * kernel, CUdevice device)}.
   */
  int kernelSetAttribute(int attribute, int value, long kernel, int device) {
    try {
      return (int) kernelSetAttribute.invokeExact(attribute, value, kernel, device);
    } catch (Throwable thrown) {
      throw unexpected("cuKernelSetAttribute", thrown);
    }
  }

  /**
   * {@code CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
   * int threads, size_t sharedBytes)}.
   */
  int occupancy(MemorySegment blocks, long function, int threads, long sharedBytes) {
    try {
      return (int) occupancy.invokeExact(blocks, function, threads, sharedBytes);
    } catch (Throwable thrown) {
      throw unexpected("cuOccupancyMaxActiveBlocksPerMultiprocessor", thrown);
    }
  }

  /**
   * {@code CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void
   * **parameters, void **extra)}.
   */
  int launchKernel(MemorySegment config, long function, MemorySegment parameters, long extra) {
    try {
      return (int) launchKernel.invokeExact(config, function, parameters, extra);
    } catch (Throwable thrown) {
      throw unexpected("cuLaunchKernelEx", thrown);
    }
  }

  /** {@code CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode)}. */
  int streamBeginCapture(long stream, int mode) {
    try {
      return (int) streamBeginCapture.invokeExact(stream, mode);
    } catch (Throwable thrown) {
      throw unexpected("cuStreamBeginCapture_v2", thrown);
    }
  }

  /** {@code CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)}. */
  int streamEndCapture(long stream, MemorySegment graph) {
    try {
      return (int) streamEndCapture.invokeExact(stream, graph);
    } catch (Throwable thrown) {
      throw unexpected("cuStreamEndCapture", thrown);
    }
  }

  /**
   * {@code CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph graph, unsigned
   * long long flags)}.
   */
  int graphInstantiate(MemorySegment executable, long graph, long flags) {
    try {
      return (int) graphInstantiate.invokeExact(executable, graph, flags);
    } catch (Throwable thrown) {
      throw unexpected("cuGraphInstantiateWithFlags", thrown);
    }
  }

  /** {@code CUresult cuGraphUpload(CUgraphExec executable, CUstream stream)}. */
  int graphUpload(long executable, long stream) {
    try {
      return (int) graphUpload.invokeExact(executable, stream);
    } catch (Throwable thrown) {
      throw unexpected("cuGraphUpload", thrown);
    }
  }

  /** {@code CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)}. */
  int graphLaunch(long executable, long stream) {
    try {
      return (int) graphLaunch.invokeExact(executable, stream);
    } catch (Throwable thrown) {
      throw unexpected("cuGraphLaunch", thrown);
    }
  }

  /** {@code CUresult cuGraphDestroy(CUgraph graph)}. */
  int graphDestroy(long graph) {
    try {
      return (int) graphDestroy.invokeExact(graph);
    } catch (Throwable thrown) {
      throw unexpected("cuGraphDestroy", thrown);
    }
  }

  /** {@code CUresult cuGraphExecDestroy(CUgraphExec executable)}. */
  int graphExecDestroy(long executable) {
    try {
      return (int) graphExecDestroy.invokeExact(executable);
    } catch (Throwable thrown) {
      throw unexpected("cuGraphExecDestroy", thrown);
    }
  }

  /**
   * {@code CUresult cuTensorMapEncodeTiled(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t
   * rank, void *address, const cuuint64_t *sizes, const cuuint64_t *strides, const cuuint32_t *box,
   * const cuuint32_t *elementStrides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
   * CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill)}.
   */
  int tensorMapEncodeTiled(
      MemorySegment map,
      int type,
      int rank,
      long address,
      MemorySegment sizes,
      MemorySegment strides,
      MemorySegment box,
      MemorySegment elementStrides,
      int interleave,
      int swizzle,
      int promotion,
      int fill) {
    try {
      return (int)
          tensorMapEncodeTiled.invokeExact(
              map,
              type,
              rank,
              address,
              sizes,
              strides,
              box,
              elementStrides,
              interleave,
              swizzle,
              promotion,
              fill);
    } catch (Throwable thrown) {
      throw unexpected("cuTensorMapEncodeTiled", thrown);
    }
  }

  /** {@code CUresult cuGetErrorName(CUresult code, const char **text)}. */
  int errorName(int code, MemorySegment text) {
    try {
      return (int) errorName.invokeExact(code, text);
    } catch (Throwable thrown) {
      throw unexpected("cuGetErrorName", thrown);
    }
  }

  /** {@code CUresult cuGetErrorString(CUresult code, const char **text)}. */
  int errorText(int code, MemorySegment text) {
    try {
      return (int) errorText.invokeExact(code, text);
    } catch (Throwable thrown) {
      throw unexpected("cuGetErrorString", thrown);
    }
  }

  @Override
  public String toString() {
    return where + " (CUDA " + version() + ")";
  }

  private static BifocalException missing(String what, String seen) {
    return BifocalException.of(
        ErrorCode.NATIVE_MISSING, "the CUDA driver: " + what, seen, "a working driver");
  }

  private static RuntimeException unexpected(String function, Throwable thrown) {
    return switch (thrown) {
      case RuntimeException known -> known;
      case Error error -> throw error;
      default ->
          BifocalException.of(ErrorCode.INTERNAL, "the call of " + function + " failed")
              .causedBy(thrown);
    };
  }

  /** Binds functions and remembers those that are not there. */
  private static final class Linking {
    private final SymbolLookup library;
    private final String where;
    private Seq<String> absent = Vector.empty();

    Linking(SymbolLookup library, String where) {
      this.library = library;
      this.where = where;
    }

    MethodHandle function(String name, MemoryLayout... arguments) {
      FunctionDescriptor type = FunctionDescriptor.of(JAVA_INT, arguments);
      return library
          .find(name)
          .map(symbol -> LINKER.downcallHandle(symbol, type))
          .orElseGet(
              () -> {
                absent = absent.append(name);
                return MethodHandles.empty(type.toMethodType());
              });
    }

    MethodHandle either(String name, String older, MemoryLayout... arguments) {
      return library.find(name).isPresent()
          ? function(name, arguments)
          : function(older, arguments);
    }

    void requireComplete() {
      if (!absent.isEmpty()) {
        throw missing(where + " is too old: it lacks a symbol", absent.mkString(", "))
            .withRemedy("install a driver for CUDA 12.4 or newer");
      }
    }
  }
}

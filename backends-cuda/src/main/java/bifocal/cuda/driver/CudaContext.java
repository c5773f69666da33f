package bifocal.cuda.driver;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.IntSupplier;

/**
 * A context of a device: the primary one, retained here and released by {@link #close}, or the host
 * engine's, which is only used. Everything made in a context is closed before it.
 *
 * <p>A fault of a kernel makes a context unusable for good. From the first call that reports one,
 * the device counts as lost: every later call says so at once and the driver is asked nothing more.
 *
 * <p>Safe for any thread; a method that needs the context makes it current on the calling thread.
 */
public final class CudaContext implements AutoCloseable {
  private static final int SUCCESS = 0;

  private final CudaDriver driver;
  private final CudaDevice device;
  private final long handle;
  private final boolean retained;
  private final Map<Object, String> open = new ConcurrentHashMap<>();
  private final DeviceRanges ranges = new DeviceRanges();
  private volatile Option<CudaError> lost = Option.none();
  private volatile boolean closed;

  private CudaContext(CudaDriver driver, CudaDevice device, long handle, boolean retained) {
    this.driver = driver;
    this.device = device;
    this.handle = handle;
    this.retained = retained;
  }

  /**
   * Retains the primary context of a device, which the CUDA runtime uses too, and makes it current
   * on the calling thread.
   *
   * @throws BifocalException {@code NATIVE_MISSING} when there is no such device, {@code
   *     NATIVE_FAILED}
   */
  public static CudaContext primary(CudaDriver driver, int ordinal) {
    CudaDevice device = CudaDevice.of(driver, ordinal);
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      driver.require("cuDevicePrimaryCtxRetain", driver.primaryContextRetain(out, device.handle()));
      CudaContext context =
          new CudaContext(driver, device, out.get(ValueLayout.JAVA_LONG, 0), true);
      try {
        context.makeCurrent();
        return context;
      } catch (RuntimeException failure) {
        closeSuppressed(context, failure);
        throw failure;
      }
    }
  }

  /**
   * Uses a context of the host engine, and makes it current on the calling thread.
   *
   * @param handle the host's {@code CUcontext}; it outlives this object
   * @throws BifocalException {@code INVALID_PARAMETER} for 0, {@code NATIVE_FAILED}
   */
  public static CudaContext adopt(CudaDriver driver, long handle) {
    if (handle == 0) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "adopted CUDA context", "0", "a context");
    }
    driver.require("cuCtxSetCurrent", driver.contextSetCurrent(handle));
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
      driver.require("cuCtxGetDevice", driver.contextGetDevice(out));
      int wanted = out.get(ValueLayout.JAVA_INT, 0);
      CudaDevice device =
          driver
              .devices()
              .find(candidate -> candidate.handle() == wanted)
              .getOrElseThrow(
                  () ->
                      BifocalException.of(
                          ErrorCode.NATIVE_MISSING, "device of an adopted context", wanted, "one"));
      return new CudaContext(driver, device, handle, false);
    }
  }

  /**
   * Uses the context that is current on the calling thread.
   *
   * @throws BifocalException {@code INVALID_PARAMETER} when there is none, {@code NATIVE_FAILED}
   */
  public static CudaContext adoptCurrent(CudaDriver driver) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_LONG);
      driver.require("cuCtxGetCurrent", driver.contextGetCurrent(out));
      return adopt(driver, out.get(ValueLayout.JAVA_LONG, 0));
    }
  }

  public CudaDriver driver() {
    return driver;
  }

  public CudaDevice device() {
    return device;
  }

  /** The device, as tensors name it. */
  public Device place() {
    return device.place();
  }

  /** The {@code CUcontext}. */
  public long handle() {
    return handle;
  }

  /** Why the device counts as lost; absent while it does not. */
  public Option<CudaError> lost() {
    return lost;
  }

  /** What was made in the context and is not closed, for reports. */
  public Seq<String> open() {
    return Vector.ofAll(open.values()).sorted();
  }

  /**
   * Makes the context current on the calling thread.
   *
   * @throws BifocalException {@code CLOSED}, {@code DEVICE_LOST}, {@code NATIVE_FAILED}
   */
  public void makeCurrent() {
    requireUsable("cuCtxSetCurrent");
    check("cuCtxSetCurrent", driver.contextSetCurrent(handle));
  }

  /**
   * Waits for everything that was launched in the context.
   *
   * @throws BifocalException {@code DEVICE_LOST} when a kernel failed, {@code NATIVE_FAILED}
   */
  public void synchronize() {
    makeCurrent();
    check("cuCtxSynchronize", driver.contextSynchronize());
  }

  /** Free bytes of the device's memory, as the driver tells them now. */
  public long freeBytes() {
    makeCurrent();
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment free = arena.allocate(ValueLayout.JAVA_LONG);
      MemorySegment total = arena.allocate(ValueLayout.JAVA_LONG);
      check("cuMemGetInfo", driver.memoryGetInfo(free, total));
      return free.get(ValueLayout.JAVA_LONG, 0);
    }
  }

  /**
   * Memory of the device that somebody else owns, as a segment that the host cannot touch.
   *
   * @param address device address
   * @throws BifocalException {@code INVALID_PARAMETER} unless the first and the last byte are
   *     memory of this device
   */
  public DeviceRange range(long address, long bytes) {
    if (bytes < 1 || address < 1 || address > Long.MAX_VALUE - bytes) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "device memory",
          bytes + " bytes at 0x" + Long.toHexString(address),
          "at least one byte at a device address");
    }
    makeCurrent();
    requireDevicePointer(address);
    requireDevicePointer(address + bytes - 1);
    return ranges.map(this, address, bytes);
  }

  /** As {@link #range}, for memory that was allocated here. */
  DeviceRange ownRange(long address, long bytes) {
    return ranges.map(this, address, bytes);
  }

  void unmap(DeviceRange range, Arena arena) {
    if (open.remove(range) != null) {
      ranges.unmap(arena);
    }
  }

  private void requireDevicePointer(long address) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment out = arena.allocate(ValueLayout.JAVA_INT);
      int code = driver.pointerGetAttribute(out, DeviceRange.ORDINAL_ATTRIBUTE, address);
      int ordinal = out.get(ValueLayout.JAVA_INT, 0);
      if (code == CudaError.INVALID_VALUE || (code == SUCCESS && ordinal < 0)) {
        throw BifocalException.of(
            ErrorCode.INVALID_PARAMETER,
            "address of device memory",
            "0x" + Long.toHexString(address),
            "memory that the driver knows");
      }
      check("cuPointerGetAttribute", code);
      if (ordinal != device.ordinal()) {
        throw BifocalException.of(
            ErrorCode.DEVICE_MISMATCH,
            "device memory at 0x" + Long.toHexString(address),
            "cuda:" + ordinal,
            place());
      }
    }
  }

  /**
   * Releases the primary context, if it was retained here; closing twice is harmless.
   *
   * @throws BifocalException {@code IN_USE} while something made in it is open, {@code
   *     NATIVE_FAILED}
   */
  @Override
  public void close() {
    if (closed) {
      return;
    }
    if (!open.isEmpty()) {
      throw BifocalException.of(
          ErrorCode.IN_USE, "CUDA context of " + place(), open().mkString(", "), "all closed");
    }
    closed = true;
    ranges.close();
    if (retained && lost.isEmpty()) {
      check("cuDevicePrimaryCtxRelease", driver.primaryContextRelease(device.handle()));
    }
  }

  /**
   * Requires that the driver may be called.
   *
   * @throws BifocalException {@code CLOSED}, {@code DEVICE_LOST}
   */
  void requireUsable(String function) {
    if (lost.isDefined()) {
      throw lost.get().afterLoss(function);
    }
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "the CUDA context was closed");
    }
  }

  /**
   * Gives something back that no launch under way is using. On a lost device there is nothing to
   * give, and nothing is called. A failure before does not keep what is given back.
   */
  void release(String function, IntSupplier call) {
    giveBack(function, call, false);
  }

  /** The same for what launches under way may be using: waits until all of them are done. */
  void releaseWhenIdle(String function, IntSupplier call) {
    giveBack(function, call, true);
  }

  private void giveBack(String function, IntSupplier call, boolean whenIdle) {
    if (lost.isDefined() || closed) {
      return;
    }
    Option<BifocalException> refused = refusal("cuCtxSetCurrent", driver.contextSetCurrent(handle));
    if (whenIdle && refused.isEmpty()) {
      refused = refusal("cuCtxSynchronize", driver.contextSynchronize());
    }
    if (lost.isEmpty()) {
      check(function, call.getAsInt());
    }
    if (refused.isDefined()) {
      throw refused.get();
    }
  }

  private Option<BifocalException> refusal(String function, int code) {
    return code == SUCCESS ? Option.none() : Option.some(failure(function, code));
  }

  /** Turns a result into an exception, unless it is success. */
  void check(String function, int code) {
    if (code != SUCCESS) {
      throw failure(function, code);
    }
  }

  BifocalException failure(String function, int code) {
    CudaError error = driver.error(code);
    if (error.sticky() && lost.isEmpty()) {
      lost = Option.some(error);
    }
    return error.failure(function);
  }

  void opened(Object resource, String name) {
    open.put(resource, name);
  }

  void released(Object resource) {
    open.remove(resource);
  }

  static void closeSuppressed(AutoCloseable resource, Throwable failure) {
    try {
      resource.close();
    } catch (Exception second) {
      failure.addSuppressed(second);
    }
  }

  @Override
  public String toString() {
    return "CUDA context of " + device;
  }
}

package bifocal.cuda.triton;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.cuda.driver.Closing;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaKernel;
import bifocal.cuda.driver.CudaKernel.Attribute;
import bifocal.cuda.driver.CudaLibrary;
import bifocal.cuda.driver.CudaStream;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.memory.DeviceMemory;
import bifocal.cuda.pack.KernelArgument;
import bifocal.cuda.pack.KernelEntry;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.pack.Specialisation;
import io.vavr.control.Validation;
import java.util.LinkedHashMap;
import java.util.Map;

/**
 * A device with a pack of kernels for it. A kernel is loaded when it is first asked for, and stays
 * until this is closed. The context outlives it.
 *
 * <p>Safe for any thread.
 */
public final class TritonDevice implements AutoCloseable {
  private static final int SHARED_WITHOUT_ASKING = 48 * 1024;

  private final CudaContext context;
  private final KernelPack pack;
  private final DeviceMemory memory;
  private final Map<Specialisation, LoadedKernel> loaded = new LinkedHashMap<>();
  private final Map<Long, SlotUpload> slots = new LinkedHashMap<>();
  private boolean closed;

  /**
   * A device of an open context.
   *
   * @param memory where constants of layers are put
   */
  public TritonDevice(CudaContext context, KernelPack pack, DeviceMemory memory) {
    this.context = context;
    this.pack = pack;
    this.memory = memory;
  }

  /** A device whose memory is not limited. */
  public static TritonDevice of(CudaContext context, KernelPack pack) {
    return new TritonDevice(context, pack, CudaMemory.unlimited(context));
  }

  public CudaContext context() {
    return context;
  }

  /** The kernels. */
  public KernelPack pack() {
    return pack;
  }

  /** Where constants of layers are put. */
  DeviceMemory memory() {
    return memory;
  }

  int multiprocessors() {
    return context.device().multiprocessors();
  }

  /**
   * The kernel that was compiled for this.
   *
   * @throws BifocalException {@code NATIVE_MISSING} that says what is missing or does not fit and
   *     what to do
   */
  synchronized LoadedKernel kernel(Specialisation wanted) {
    requireOpen();
    LoadedKernel known = loaded.get(wanted);
    if (known != null) {
      return known;
    }
    KernelEntry entry = required(pack.find(wanted));
    byte[] binary = required(pack.binary(entry));
    CudaLibrary library = CudaLibrary.load(context, entry.key(), binary);
    try {
      LoadedKernel kernel = new LoadedKernel(entry, checked(entry, library.kernel(entry.symbol())));
      loaded.put(wanted, kernel);
      return kernel;
    } catch (RuntimeException failure) {
      try {
        library.close();
      } catch (RuntimeException second) {
        failure.addSuppressed(second);
      }
      throw failure;
    }
  }

  /** Where the slots of steps on a stream are put, which the layers share. */
  synchronized SlotUpload slots(CudaStream stream) {
    requireOpen();
    return slots.computeIfAbsent(stream.handle(), handle -> new SlotUpload(context, memory));
  }

  private void requireOpen() {
    if (closed) {
      throw BifocalException.of(ErrorCode.CLOSED, "the kernels of " + pack.directory());
    }
  }

  private static <T> T required(Validation<PackRefusal, T> found) {
    return found.fold(
        refusal -> {
          throw refusal.asException();
        },
        value -> value);
  }

  private CudaKernel checked(KernelEntry entry, CudaKernel kernel) {
    requireParameters(entry, kernel);
    if (entry.globalScratch() != 0 || entry.profileScratch() != 0) {
      throw refusal(
          PackRefusal.Code.RESOURCES,
          entry,
          entry.globalScratch() + " bytes of scratch memory a block",
          "none");
    }
    int most = context.device().sharedBytesPerBlock();
    if (entry.sharedMemory() > most) {
      throw refusal(
          PackRefusal.Code.RESOURCES,
          entry,
          entry.sharedMemory() + " bytes of shared memory",
          "at most " + most + " on " + context.place());
    }
    if (entry.sharedMemory() > SHARED_WITHOUT_ASKING) {
      kernel.setAttribute(Attribute.MAX_DYNAMIC_SHARED_BYTES, entry.sharedMemory());
    }
    return kernel;
  }

  /** Compares what the manifest says of each parameter with what the driver found in the code. */
  private static void requireParameters(KernelEntry entry, CudaKernel kernel) {
    if (kernel.parameters().size() != entry.arguments().size()) {
      throw refusal(
          PackRefusal.Code.PARAMETERS,
          entry,
          kernel.parameters().size() + " parameters in the binary",
          entry.arguments().size() + ", as the manifest says");
    }
    for (int i = 0; i < entry.arguments().size(); i++) {
      KernelArgument said = entry.arguments().get(i);
      CudaKernel.Parameter found = kernel.parameters().get(i);
      if (found.offset() != said.offset() || found.bytes() != said.size()) {
        throw refusal(
            PackRefusal.Code.PARAMETERS,
            entry,
            "parameter " + i + " has " + found.bytes() + " bytes at " + found.offset(),
            said.name() + " of " + said.size() + " bytes at " + said.offset());
      }
    }
  }

  private static BifocalException refusal(
      PackRefusal.Code code, KernelEntry entry, String seen, String wanted) {
    return new PackRefusal(code, "kernel " + entry.key(), seen, wanted, "build the pack again")
        .asException();
  }

  /** Unloads the kernels and gives back their memory; closing twice is harmless. */
  @Override
  public synchronized void close() {
    if (closed) {
      return;
    }
    closed = true;
    Closing closing = new Closing();
    slots.values().forEach(upload -> closing.then(upload::close));
    slots.clear();
    loaded.values().forEach(kernel -> closing.then(kernel.kernel().library()::close));
    loaded.clear();
    closing.end();
  }
}

package bifocal.cli.backend;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.LaunchContext;
import bifocal.core.cache.KvCachePool;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.engine.DeviceSession;
import bifocal.core.engine.DeviceSessions;
import bifocal.core.ffi.HugePages;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Where a command runs kernels: the host, whose tensors kernels read where they are, or a device
 * with copies of them. It belongs to the thread that opened it.
 */
public final class RunDevice implements AutoCloseable {
  private static final long ALIGNMENT = 256;

  private final Option<DeviceSession> session;
  private final LaunchContext launch;
  private final Arena arena;

  private RunDevice(Option<DeviceSession> session, LaunchContext launch, Arena arena) {
    this.session = session;
    this.launch = launch;
    this.arena = arena;
  }

  /**
   * Opens a platform's first device.
   *
   * @param arena owns memory of the host
   * @throws bifocal.core.error.BifocalException {@code NATIVE_MISSING} that says what is missing
   */
  public static RunDevice open(Platform platform, AttentionObserver observer, Arena arena) {
    if (platform == Platform.CPU) {
      return new RunDevice(Option.none(), new HostLaunchContext(observer), arena);
    }
    DeviceSession session = DeviceSessions.of(platform).open(observer);
    return new RunDevice(Option.some(session), session.launch(), arena);
  }

  /** What backends of a platform are validated against on this host. */
  public static DeviceProfile profile(Platform platform) {
    if (platform == Platform.CPU) {
      return new DeviceProfile.Cpu(DeviceProfile.CpuIsa.GENERIC, HashSet.empty(), false);
    }
    try (DeviceSession session = DeviceSessions.of(platform).open(AttentionObserver.NONE)) {
      return session.profile();
    }
  }

  public LaunchContext launch() {
    return launch;
  }

  /** Whether kernels read the host's tensors. */
  public boolean isHost() {
    return session.isEmpty();
  }

  /** A pool of cache blocks. */
  public KvCachePool pool(Seq<KvCachePool.Group> groups) {
    return session.isEmpty()
        ? KvCachePool.allocate(groups)
        : KvCachePool.over(
            session.get().allocate("KV cache", KvCachePool.bytes(groups)),
            session.get().device(),
            session.get().blocks(),
            groups);
  }

  /** A workspace for one step at a time. */
  public Workspace workspace(WorkspacePlan plan) {
    long bytes = plan.totalBytes(1);
    return session.isEmpty()
        ? Workspace.wrap(HugePages.allocate(arena, bytes, ALIGNMENT), plan, 1)
        : Workspace.wrap(
            session.get().allocate("workspace", bytes), plan, 1, session.get().zeroing());
  }

  /** Room on the device for a tensor of the host; on the host the tensor itself. */
  public TensorView twin(String name, TensorView host) {
    return session.isEmpty()
        ? host
        : TensorView.of(
            session.get().allocate(name, host.data().byteSize()),
            host.dtype(),
            session.get().device(),
            host.shape());
  }

  /** A copy of a tensor of the host. */
  public TensorView copy(String name, TensorView host) {
    TensorView twin = twin(name, host);
    upload(host, twin);
    return twin;
  }

  /** Copies a dense tensor of the host to its twin. */
  public void upload(TensorView host, TensorView twin) {
    session.forEach(open -> open.upload(bytes(host), twin.data()));
  }

  /** Waits for what was launched, then copies a twin back. */
  public void download(TensorView twin, TensorView host) {
    session.forEach(open -> open.download(twin.data(), bytes(host)));
  }

  /** Fills a dense tensor with one byte. */
  public void fill(TensorView tensor, byte value) {
    MemorySegment bytes = bytes(tensor);
    if (session.isEmpty()) {
      bytes.fill(value);
    } else {
      session.get().fill(bytes, value);
    }
  }

  /** Waits for what was launched. */
  public void synchronize() {
    session.forEach(DeviceSession::synchronize);
  }

  private static MemorySegment bytes(TensorView dense) {
    return dense.data().asSlice(0, dense.elements() * dense.dtype().bytes());
  }

  @Override
  public void close() {
    session.forEach(DeviceSession::close);
  }
}

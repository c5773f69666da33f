package bifocal.conformance.memory;

import bifocal.conformance.ffi.GuardPages;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.LaunchContext;
import bifocal.core.device.Device;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/**
 * Host memory that finds out about stray accesses. A plain device puts a known pattern before and
 * behind each block and compares it when closed. A guarded one lets each block end at a page that
 * cannot be accessed, so that reading a byte too far ends the JVM at once, on the spot.
 */
public final class HostTestDevice implements TestDevice {
  private static final long ALIGNMENT = 64;
  private static final byte CANARY = (byte) 0xA5;

  private final LaunchContext launch = new HostLaunchContext(AttentionObserver.NONE);
  private final Arena arena;
  private final boolean guarded;
  private final List<Block> blocks = new ArrayList<>();

  private record Block(MemorySegment before, long bytes, MemorySegment behind) {}

  @SuppressWarnings("MustBeClosedChecker") // close() closes it
  private HostTestDevice(boolean guarded) {
    this.arena = Arena.ofShared();
    this.guarded = guarded;
  }

  /** Memory between canaries. */
  public static HostTestDevice plain() {
    return new HostTestDevice(false);
  }

  /** Memory that ends at pages without access; see {@link GuardPages#available}. */
  public static HostTestDevice guarded() {
    return new HostTestDevice(true);
  }

  @Override
  public Device device() {
    return Device.HOST;
  }

  @Override
  public LaunchContext launch() {
    return launch;
  }

  @Override
  public MemorySegment allocate(long bytes) {
    if (guarded) {
      return GuardPages.allocate(bytes, arena);
    }
    long room = Math.ceilDiv(bytes, ALIGNMENT) * ALIGNMENT;
    MemorySegment all = arena.allocate(room + 2 * ALIGNMENT, ALIGNMENT);
    MemorySegment before = all.asSlice(0, ALIGNMENT).fill(CANARY);
    MemorySegment behind = all.asSlice(ALIGNMENT + bytes).fill(CANARY);
    blocks.add(new Block(before, bytes, behind));
    return all.asSlice(ALIGNMENT, bytes);
  }

  @Override
  public void upload(MemorySegment host, MemorySegment device) {
    device.copyFrom(host);
  }

  @Override
  public void download(MemorySegment device, MemorySegment host) {
    host.copyFrom(device);
  }

  @Override
  public void close() {
    if (!arena.scope().isAlive()) {
      return;
    }
    String damage = damage();
    arena.close();
    if (!damage.isEmpty()) {
      throw new AssertionError(damage);
    }
  }

  private String damage() {
    for (Block block : blocks) {
      if (!untouched(block.before()) || !untouched(block.behind())) {
        return "something was written beside a block of " + block.bytes() + " bytes";
      }
    }
    return "";
  }

  private static boolean untouched(MemorySegment canary) {
    for (long i = 0; i < canary.byteSize(); i++) {
      if (canary.get(ValueLayout.JAVA_BYTE, i) != CANARY) {
        return false;
      }
    }
    return true;
  }
}

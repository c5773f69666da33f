package bifocal.composite;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.LaunchContext;
import bifocal.core.device.Device;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/** A host context that writes down what is copied. */
final class WatchedLaunch implements LaunchContext {
  private final LaunchContext host;
  final List<Copy> copies = new ArrayList<>();

  /** Bytes copied from one block of memory to another. */
  record Copy(MemorySegment from, MemorySegment to, long bytes) {}

  WatchedLaunch() {
    this(AttentionObserver.NONE);
  }

  WatchedLaunch(AttentionObserver observer) {
    host = new HostLaunchContext(observer);
  }

  @Override
  public Device device() {
    return host.device();
  }

  @Override
  public long stream() {
    return host.stream();
  }

  @Override
  public AttentionObserver observer() {
    return host.observer();
  }

  @Override
  public void requireOwner() {
    host.requireOwner();
  }

  @Override
  public void copy(
      MemorySegment from, long fromOffset, MemorySegment to, long toOffset, long bytes) {
    copies.add(new Copy(from, to, bytes));
    host.copy(from, fromOffset, to, toOffset, bytes);
  }
}

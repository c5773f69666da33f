package bifocal.core.workspace;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.ffi.HugePages;
import bifocal.core.lifecycle.InFlight;
import io.vavr.collection.HashMap;
import io.vavr.collection.Map;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;

/**
 * One piece of memory for everything backends need while they run. Its address and size never
 * change. Memory that it allocated goes with {@link #close}; memory of a host stays the host's, who
 * releases it afterwards.
 *
 * <p>Not thread-safe: it belongs to the thread that runs steps.
 */
public final class Workspace implements AutoCloseable {
  private final MemorySegment memory;
  private final WorkspacePlan plan;
  private final Zeroing zeroing;
  private final Map<String, Slice> slices;
  private final BitSet openSteps = new BitSet();
  private final BitSet dirty = new BitSet();
  private final int stepsInFlight;
  private final Runnable release;
  private boolean closed;
  private boolean released;
  private boolean bound;
  private long boundStream;

  /** How zeroes are written on the device that owns the memory. */
  @FunctionalInterface
  public interface Zeroing {
    /** Zeroes the memory before anything launched later reads it. */
    void zero(MemorySegment memory);

    /** Zeroes host memory. */
    Zeroing HOST = memory -> memory.fill((byte) 0);
  }

  private record Slice(int index, long offset, WorkspaceRegion region) {}

  private Workspace(
      MemorySegment memory,
      WorkspacePlan plan,
      int stepsInFlight,
      Zeroing zeroing,
      Runnable release) {
    this.release = release;
    this.memory = memory;
    this.plan = plan;
    this.stepsInFlight = stepsInFlight;
    this.zeroing = zeroing;
    this.slices = slices(plan);
    dirty.set(0, plan.zeroed().size());
  }

  /** Wraps host memory; see {@link #wrap(MemorySegment, WorkspacePlan, int, Zeroing)}. */
  public static Workspace wrap(MemorySegment memory, WorkspacePlan plan, int stepsInFlight) {
    return wrap(memory, plan, stepsInFlight, Zeroing.HOST);
  }

  /**
   * Wraps memory that holds a plan.
   *
   * @param stepsInFlight steps that may be open at once
   * @throws BifocalException {@code WORKSPACE_TOO_SMALL} with the bytes found and needed
   */
  public static Workspace wrap(
      MemorySegment memory, WorkspacePlan plan, int stepsInFlight, Zeroing zeroing) {
    requireSteps(stepsInFlight);
    long needed = plan.totalBytes(stepsInFlight);
    if (memory.byteSize() < needed) {
      throw BifocalException.of(
              ErrorCode.WORKSPACE_TOO_SMALL,
              "workspace with regions " + regionList(plan),
              memory.byteSize() + " bytes",
              needed + " bytes")
          .withRemedy("raise the workspace's size, or lower max-num-batched-tokens");
    }
    return new Workspace(memory, plan, stepsInFlight, zeroing, () -> {});
  }

  /**
   * Allocates host memory that holds a plan.
   *
   * @param stepsInFlight steps that may be open at once
   * @throws BifocalException {@code INVALID_PARAMETER}, or {@code MEMORY_TOO_SMALL} when the host
   *     has not enough
   */
  @SuppressWarnings("MustBeClosedChecker") // the workspace closes its arena
  public static Workspace allocate(WorkspacePlan plan, int stepsInFlight) {
    requireSteps(stepsInFlight);
    long bytes = plan.totalBytes(stepsInFlight);
    Arena arena = Arena.ofShared();
    try {
      return new Workspace(
          HugePages.allocate(arena, bytes, WorkspacePlan.ALIGNMENT),
          plan,
          stepsInFlight,
          Zeroing.HOST,
          arena::close);
    } catch (OutOfMemoryError | IllegalArgumentException e) {
      arena.close();
      throw BifocalException.of(
              ErrorCode.MEMORY_TOO_SMALL, "memory of a workspace", "refused", bytes + " bytes")
          .withRemedy("lower max-num-batched-tokens")
          .causedBy(e);
    }
  }

  private static void requireSteps(int stepsInFlight) {
    if (stepsInFlight < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "steps in flight", stepsInFlight, "at least 1");
    }
  }

  /** The plan the memory was sized for. */
  public WorkspacePlan plan() {
    return plan;
  }

  /** The memory; its address and size are fixed for the workspace's life. */
  public MemorySegment memory() {
    return memory;
  }

  /**
   * Opens a step and its leased memory.
   *
   * @throws BifocalException {@code CLOSED} or {@code TOO_MANY_STEPS}
   */
  public Step openStep() {
    requireOpen();
    int slot = openSteps.nextClearBit(0);
    if (slot >= stepsInFlight) {
      throw BifocalException.of(
          ErrorCode.TOO_MANY_STEPS, "open steps", slot + 1, "at most " + stepsInFlight);
    }
    openSteps.set(slot);
    long start =
        plan.zeroedBytes()
            + plan.scratchBytes()
            + Math.multiplyExact(plan.stepBytes(), (long) slot);
    return new Step(slot, memory.asSlice(start, plan.stepBytes()));
  }

  /**
   * Opens a step of one stream or queue. The first such call binds the workspace: two streams would
   * write its regions at the same time.
   *
   * @param stream native handle, 0 on the host
   * @throws BifocalException {@code WRONG_STREAM} for another stream than the first one's, {@code
   *     CLOSED} or {@code TOO_MANY_STEPS}
   */
  public Step openStep(long stream) {
    requireOpen();
    if (bound && stream != boundStream) {
      throw BifocalException.of(
              ErrorCode.WRONG_STREAM,
              "stream of a workspace",
              "0x" + Long.toHexString(stream),
              "0x" + Long.toHexString(boundStream))
          .withRemedy("give each stream a workspace of its own");
    }
    Step step = openStep();
    bound = true;
    boundStream = stream;
    return step;
  }

  /**
   * Stops handing out memory, and releases it if the workspace allocated it; closing twice is
   * harmless.
   *
   * @throws BifocalException {@code IN_USE} while a native call uses the memory; a later close
   *     releases it
   */
  @Override
  public void close() {
    closed = true;
    if (released) {
      return;
    }
    try {
      release.run();
      released = true;
    } catch (IllegalStateException e) {
      throw BifocalException.of(ErrorCode.IN_USE, "a native call still uses the workspace's memory")
          .withRemedy("let the running step end, then close the workspace again")
          .causedBy(e);
    }
  }

  private MemorySegment enter(String name) {
    requireOpen();
    Slice slice =
        slices
            .get(name)
            .getOrElseThrow(
                () ->
                    BifocalException.of(
                        ErrorCode.WORKSPACE_REGION_UNKNOWN,
                        "workspace region",
                        name,
                        regionList(plan)));
    MemorySegment region = memory.asSlice(slice.offset(), slice.region().bytes());
    if (slice.region().state() == WorkspaceRegion.State.ZEROED && dirty.get(slice.index())) {
      zeroing.zero(region);
      dirty.clear(slice.index());
    }
    return region;
  }

  private void markDirty(String prefix) {
    for (int i = 0; i < plan.zeroed().size(); i++) {
      if (plan.zeroed().get(i).region().name().startsWith(prefix)) {
        dirty.set(i);
      }
    }
  }

  private void requireOpen() {
    if (closed || !memory.scope().isAlive()) {
      throw BifocalException.of(ErrorCode.CLOSED, "the workspace was closed");
    }
  }

  private static Map<String, Slice> slices(WorkspacePlan plan) {
    Map<String, Slice> slices = HashMap.empty();
    for (int i = 0; i < plan.zeroed().size(); i++) {
      WorkspacePlan.Placed placed = plan.zeroed().get(i);
      slices = slices.put(placed.region().name(), new Slice(i, placed.offset(), placed.region()));
    }
    for (WorkspacePlan.Placed placed : plan.scratch()) {
      slices =
          slices.put(
              placed.region().name(),
              new Slice(-1, plan.zeroedBytes() + placed.offset(), placed.region()));
    }
    return slices;
  }

  private static String regionList(WorkspacePlan plan) {
    return plan.zeroed()
        .appendAll(plan.scratch())
        .map(placed -> placed.region().name() + " (" + placed.region().bytes() + " bytes)")
        .mkString("[", ", ", "]");
  }

  /** One open step: the regions, and memory that is handed out once until the step is closed. */
  public final class Step implements WorkspaceView, AutoCloseable {
    private final int slot;
    private final MemorySegment leased;
    private final InFlight calls = new InFlight("the step");
    private long used;
    private boolean over;

    private Step(int slot, MemorySegment leased) {
      this.slot = slot;
      this.leased = leased;
    }

    @Override
    public MemorySegment region(String name) {
      requireStep();
      return Workspace.this.enter(name);
    }

    @Override
    public MemorySegment lease(long bytes, long alignment) {
      requireStep();
      if (Long.bitCount(alignment) != 1 || alignment < 1 || alignment > WorkspacePlan.ALIGNMENT) {
        throw BifocalException.of(
            ErrorCode.INVALID_PARAMETER,
            "alignment of leased memory",
            alignment,
            "a power of two of at most " + WorkspacePlan.ALIGNMENT);
      }
      long start = Math.multiplyExact(Math.ceilDiv(used, alignment), alignment);
      if (bytes < 0 || bytes > leased.byteSize() - start) {
        throw BifocalException.of(
            ErrorCode.WORKSPACE_TOO_SMALL,
            "memory leased by one step",
            bytes + " bytes behind " + start,
            "at most the planned " + leased.byteSize());
      }
      used = start + bytes;
      return leased.asSlice(start, bytes);
    }

    @Override
    public WorkspaceView child(String prefix) {
      return new ChildView(this, prefix);
    }

    @Override
    public void requireOpen() {
      Workspace.this.requireOpen();
      requireStep();
    }

    @Override
    public void markDirty() {
      Workspace.this.markDirty("");
    }

    @Override
    public void enter() {
      calls.enter();
    }

    @Override
    public void leave() {
      calls.leave();
    }

    /**
     * Gives the leased memory back; closing twice is harmless.
     *
     * @throws BifocalException {@code IN_USE} while a call uses it; the step stays open then
     */
    @Override
    public void close() {
      if (calls.close()) {
        over = true;
        openSteps.clear(slot);
      }
    }

    private void requireStep() {
      if (over) {
        throw BifocalException.of(ErrorCode.CLOSED, "the step was closed");
      }
    }

    private void markChildDirty(String prefix) {
      Workspace.this.markDirty(prefix);
    }
  }

  private record ChildView(Step step, String prefix) implements WorkspaceView {
    @Override
    public MemorySegment region(String name) {
      return step.region(prefix + name);
    }

    @Override
    public MemorySegment lease(long bytes, long alignment) {
      return step.lease(bytes, alignment);
    }

    @Override
    public WorkspaceView child(String inner) {
      return new ChildView(step, prefix + inner);
    }

    @Override
    public void enter() {
      step.enter();
    }

    @Override
    public void leave() {
      step.leave();
    }

    @Override
    public void requireOpen() {
      step.requireOpen();
    }

    @Override
    public void markDirty() {
      step.markChildDirty(prefix);
    }
  }
}

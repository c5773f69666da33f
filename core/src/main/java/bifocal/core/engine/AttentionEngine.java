package bifocal.core.engine;

import bifocal.core.Incubating;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.HostLaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.cache.KvCachePool;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.LayerParameters;
import bifocal.core.observe.JfrObserver;
import bifocal.core.workspace.Workspace;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A plan in operation, in host memory: one pool, one workspace, the thread that owns the device,
 * and for each layer group a runtime and its requests. Whatever it opens it closes, last first.
 * Hosts that bring memory, block manager or thread of their own put the same parts together
 * themselves.
 */
@Incubating
public final class AttentionEngine implements AutoCloseable {
  private final DeviceExecutor<HostLaunchContext> device;
  private final Workspace workspace;
  private final Seq<EngineGroup> groups;
  private final Parts parts;
  private final AtomicLong steps = new AtomicLong();

  private AttentionEngine(
      DeviceExecutor<HostLaunchContext> device,
      Workspace workspace,
      Seq<EngineGroup> groups,
      Parts parts) {
    this.device = device;
    this.workspace = workspace;
    this.groups = groups;
    this.parts = parts;
  }

  /**
   * Opens a plan whose layers have no weights of attention's own, observed by Flight Recorder.
   *
   * @param blocksPerGroup blocks of each group, the null block included
   * @throws BifocalException {@code MEMORY_TOO_SMALL}, or what a backend refuses; nothing stays
   *     open
   */
  public static AttentionEngine open(EnginePlan plan, int blocksPerGroup) {
    return open(plan, blocksPerGroup, new JfrObserver(), layer -> LayerParameters.NONE);
  }

  /**
   * Opens a plan.
   *
   * @param blocksPerGroup blocks of each group, the null block included
   * @param observer sees routes and runs
   * @param parameters weights by the layer's name
   * @throws BifocalException {@code MEMORY_TOO_SMALL}, or what a backend refuses; nothing stays
   *     open
   */
  public static AttentionEngine open(
      EnginePlan plan,
      int blocksPerGroup,
      AttentionObserver observer,
      Function<String, LayerParameters> parameters) {
    Parts parts = new Parts();
    try {
      KvCachePool pool =
          parts.keep(KvCachePool.allocate(plan.groups().map(g -> g.blocks(blocksPerGroup))));
      Workspace workspace = parts.keep(Workspace.allocate(plan.workspace(), 1));
      Parts runtimes = new Parts();
      Seq<PagedRequests> requests =
          plan.groups()
              .map(g -> PagedRequests.allocate(pool.group(g.group().name()), largest(plan)))
              .map(parts::keep)
              .toVector();
      DeviceExecutor<HostLaunchContext> device =
          parts.keep(
              DeviceExecutor.start(
                  "bifocal-engine",
                  () -> new HostLaunchContext(observer),
                  launch -> runtimes.close()));
      Seq<EngineGroup> groups =
          plan.groups()
              .zipWith(
                  requests,
                  (group, rows) ->
                      new EngineGroup(
                          group,
                          device.<GroupRuntime<?>>run(
                              launch -> runtimes.keep(group.open(parameters))),
                          pool.group(group.group().name()),
                          rows))
              .toVector();
      return new AttentionEngine(device, workspace, groups, parts);
    } catch (RuntimeException | Error e) {
      parts.closeAfter(e);
      throw e;
    }
  }

  private static BatchLimits largest(EnginePlan plan) {
    return plan.batches()
        .reduce(
            (a, b) ->
                new BatchLimits(
                    Math.max(a.maxRequests(), b.maxRequests()),
                    Math.max(a.maxQueryTokens(), b.maxQueryTokens()),
                    Math.max(a.maxSeqLen(), b.maxSeqLen())));
  }

  /** The groups, in the order of the plan. */
  public Seq<EngineGroup> groups() {
    return groups;
  }

  /**
   * The group of a name.
   *
   * @throws BifocalException {@code INVALID_PARAMETER}
   */
  public EngineGroup group(String name) {
    return groups
        .find(group -> group.layers().name().equals(name))
        .getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.INVALID_PARAMETER,
                    "layer group",
                    name,
                    groups.map(group -> group.layers().name()).mkString(", ")));
  }

  /**
   * Lets an empty row begin, in every group, with what is cached of a sequence; its tokens from
   * there on are to be scheduled. It belongs to whoever schedules.
   *
   * @param tokenIds the sequence's tokens, as far as they are known
   * @param images its images, also those whose tokens follow later
   * @return tokens that the row has now, the same in each group
   * @throws BifocalException as {@link PagedRequests#begin}, with nothing leased
   */
  public int begin(int row, int[] tokenIds, SequenceImage... images) {
    int most = Integer.MAX_VALUE;
    while (true) {
      Seq<Integer> begun = beginAll(row, tokenIds, Vector.of(images), most);
      most = begun.min().get();
      if (begun.forAll(begun.head()::equals)) {
        return most;
      }
      release(row);
    }
  }

  private Seq<Integer> beginAll(
      int row, int[] tokenIds, Seq<SequenceImage> images, int mostTokens) {
    Seq<Integer> begun = Vector.empty();
    try {
      for (EngineGroup group : groups) {
        begun = begun.append(group.requests().begin(row, tokenIds, images, mostTokens));
      }
      return begun;
    } catch (BifocalException e) {
      groups.take(begun.size()).forEach(group -> group.requests().release(row));
      throw e;
    }
  }

  /** Names the next tokens of a row in every group; see {@link PagedRequests#append}. */
  public void append(int row, int... tokenIds) {
    groups.forEach(group -> group.requests().append(row, tokenIds));
  }

  /** Lets what was computed be found by other rows; see {@link PagedRequests#publish}. */
  public void publish() {
    groups.forEach(group -> group.requests().publish());
  }

  /** Gives a row's blocks back in every group. */
  public void release(int row) {
    groups.forEach(group -> group.requests().release(row));
  }

  /**
   * Runs one step on the thread that owns the device and waits for it. What is built from the
   * step's context ends with the step.
   *
   * @throws BifocalException {@code CLOSED}
   */
  public <T> T run(Function<StepContext, ? extends T> step) {
    return device.run(
        launch -> {
          try (Workspace.Step open = workspace.openStep(launch.stream())) {
            return step.apply(new StepContext(launch, open, steps.getAndIncrement()));
          }
        });
  }

  /** As {@link #run}, for a step without a result. */
  public void execute(Consumer<StepContext> step) {
    run(
        context -> {
          step.accept(context);
          return context;
        });
  }

  /**
   * Lets the running step end and closes everything; closing twice is harmless.
   *
   * @throws BifocalException {@code IN_USE} from inside a step
   */
  @Override
  public void close() {
    device.requireOutside();
    parts.close();
  }

  /** What was opened so far; closed in the opposite order. */
  private static final class Parts implements AutoCloseable {
    private final Deque<AutoCloseable> opened = new ArrayDeque<>();

    private <T extends AutoCloseable> T keep(T part) {
      opened.push(part);
      return part;
    }

    private void closeAfter(Throwable failure) {
      try {
        close();
      } catch (RuntimeException | Error e) {
        failure.addSuppressed(e);
      }
    }

    @Override
    public synchronized void close() {
      Seq<Throwable> failures = Vector.empty();
      while (!opened.isEmpty()) {
        try {
          opened.pop().close();
        } catch (Exception | Error e) {
          failures = failures.append(e);
        }
      }
      if (failures.nonEmpty()) {
        BifocalException failure =
            BifocalException.of(ErrorCode.INTERNAL, "closing an engine failed")
                .causedBy(failures.head());
        failures.tail().forEach(failure::addSuppressed);
        throw failure;
      }
    }
  }
}

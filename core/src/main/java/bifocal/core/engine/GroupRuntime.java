package bifocal.core.engine;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.lifecycle.InFlight;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.WorkspaceView;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/**
 * One layer group, ready to run: a builder for its steps and an implementation for each of its
 * layers, all made by one backend and closed together, once. It keeps nothing of a step.
 *
 * <p>It belongs to the thread that owns the device; each call from another is refused. Another
 * thread may close it; while a call runs that is refused, and changes nothing.
 *
 * @param <M> metadata of the backend
 */
public final class GroupRuntime<M extends AttentionMetadata> implements AutoCloseable {
  private final LayerGroup group;
  private final KvCacheSpec cache;
  private final String regionPrefix;
  private final AttentionMetadataBuilder<M> builder;
  private final List<AttentionImpl<M>> impls;
  private final InFlight calls;

  private GroupRuntime(
      LayerGroup group,
      KvCacheSpec cache,
      String regionPrefix,
      AttentionMetadataBuilder<M> builder,
      List<AttentionImpl<M>> impls) {
    this.group = group;
    this.cache = cache;
    this.regionPrefix = regionPrefix;
    this.builder = builder;
    this.impls = impls;
    this.calls = new InFlight("layer group " + group.name());
  }

  /** Opens a group whose layers have no weights of attention's own. */
  public static <M extends AttentionMetadata> GroupRuntime<M> open(
      AttentionBackend<M> backend, LayerGroup group, KvCacheSpec cache) {
    return open(backend, group, cache, "", layer -> LayerParameters.NONE);
  }

  /**
   * Opens a group. When a part cannot be made, those made before are closed again.
   *
   * @param regionPrefix under which the group's workspace regions were planned; empty when the
   *     workspace is this group's alone
   * @param parameters weights by the layer's name
   */
  public static <M extends AttentionMetadata> GroupRuntime<M> open(
      AttentionBackend<M> backend,
      LayerGroup group,
      KvCacheSpec cache,
      String regionPrefix,
      Function<String, LayerParameters> parameters) {
    List<AutoCloseable> opened = new ArrayList<>();
    try {
      AttentionMetadataBuilder<M> builder = backend.createBuilder(group, cache);
      opened.add(builder);
      List<AttentionImpl<M>> impls = new ArrayList<>();
      for (String layer : group.layers()) {
        AttentionImpl<M> impl = backend.createImpl(group.spec(), parameters.apply(layer), cache);
        opened.add(impl);
        impls.add(impl);
      }
      return new GroupRuntime<>(group, cache, regionPrefix, builder, List.copyOf(impls));
    } catch (RuntimeException | Error e) {
      closeAll(opened).forEach(e::addSuppressed);
      throw e;
    }
  }

  /** The group. */
  public LayerGroup group() {
    return group;
  }

  /** The contract of the group's cache. */
  public KvCacheSpec cache() {
    return cache;
  }

  /** Queries up to which the group's requests are decodes and want to stand first. */
  public Option<Integer> decodeThreshold() {
    return builder.decodeThreshold();
  }

  /**
   * Builds a step and keeps it together with its batch. Block table and slots are read once, where
   * the host can, so that no layer's kernel leaves its cache.
   */
  public GroupStep<M> step(StepContext step, CommonAttentionMetadata batch) {
    M metadata = build(step, batch);
    try {
      return new GroupStep<>(this, step, batch, metadata);
    } catch (IllegalStateException | WrongThreadException e) {
      throw memoryRefusal(e, batch.blockTable().data(), batch.slots().slots().data());
    }
  }

  /**
   * Builds one step's metadata. A failure leaves the group's regions to be zeroed before their next
   * use.
   */
  public M build(StepContext step, CommonAttentionMetadata batch) {
    StepContext own = regionPrefix.isEmpty() ? step : step.child(regionPrefix);
    enter(step.launch());
    try {
      return builder.build(own, group, batch);
    } catch (IllegalStateException | WrongThreadException e) {
      own.workspace().markDirty();
      throw memoryRefusal(e, batch.blockTable().data(), batch.slots().slots().data());
    } catch (RuntimeException | Error failure) {
      own.workspace().markDirty();
      throw failure;
    } finally {
      calls.leave();
    }
  }

  /** The part of a step's workspace that is the group's. */
  WorkspaceView regions(WorkspaceView step) {
    return regionPrefix.isEmpty() ? step : step.child(regionPrefix);
  }

  /**
   * Writes a step's keys and values into one layer's cache.
   *
   * @param layer index of the layer in its group
   */
  public void writeKv(
      LaunchContext launch, int layer, KvInput input, KvCacheView view, SlotMapping slots) {
    enter(launch);
    try {
      requireContract(view);
      impl(layer).writeKv(launch, input, view, slots);
    } catch (IllegalStateException | WrongThreadException e) {
      throw memoryRefusal(e, view.memory(), slots.slots().data());
    } finally {
      calls.leave();
    }
  }

  /**
   * Computes one layer's attention over its cache.
   *
   * @param layer index of the layer in its group
   */
  public void forward(
      LaunchContext launch,
      int layer,
      TensorView q,
      KvCacheView view,
      M metadata,
      AttentionOutput output) {
    enter(launch);
    try {
      requireContract(view);
      impl(layer).forward(launch, q, view, metadata, output);
    } catch (IllegalStateException | WrongThreadException e) {
      throw memoryRefusal(e, view.memory(), q.data(), output.out().data());
    } finally {
      calls.leave();
    }
  }

  /**
   * Computes one layer's attention over keys and values that are in no cache.
   *
   * @param layer index of the layer in its group
   */
  public void forwardUncached(
      LaunchContext launch,
      int layer,
      TensorView q,
      KvInput kv,
      M metadata,
      AttentionOutput output) {
    enter(launch);
    try {
      impl(layer).forwardUncached(launch, q, kv, metadata, output);
    } catch (IllegalStateException | WrongThreadException e) {
      throw memoryRefusal(e, q.data(), output.out().data());
    } finally {
      calls.leave();
    }
  }

  /**
   * Closes the implementations and the builder; closing twice is harmless. All of them are closed
   * even when some fail; the first failure is thrown, the others are suppressed in it.
   *
   * @throws BifocalException {@code IN_USE} while a call runs; nothing is closed then
   */
  @Override
  public void close() {
    if (!calls.close()) {
      return;
    }
    List<AutoCloseable> parts = new ArrayList<>();
    parts.add(builder);
    parts.addAll(impls);
    List<Throwable> failures = closeAll(parts);
    if (!failures.isEmpty()) {
      BifocalException failure =
          BifocalException.of(ErrorCode.INTERNAL, "closing layer group " + group.name() + " failed")
              .causedBy(failures.removeFirst());
      failures.forEach(failure::addSuppressed);
      throw failure;
    }
  }

  /** Closes the last first. */
  private static List<Throwable> closeAll(List<AutoCloseable> parts) {
    List<Throwable> failures = new ArrayList<>();
    for (AutoCloseable part : parts.reversed()) {
      try {
        part.close();
      } catch (Exception | Error e) {
        failures.add(e);
      }
    }
    return failures;
  }

  private AttentionImpl<M> impl(int layer) {
    if (layer < 0 || layer >= impls.size()) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "layer of group " + group.name(),
          layer,
          "0.." + (impls.size() - 1));
    }
    return impls.get(layer);
  }

  private void enter(LaunchContext launch) {
    launch.requireOwner();
    calls.enter();
  }

  /** What the JVM throws about memory of an arena, as a refusal; anything else as it is. */
  private RuntimeException memoryRefusal(RuntimeException thrown, MemorySegment... memory) {
    String what = "memory of a step of layer group " + group.name();
    if (thrown instanceof WrongThreadException) {
      return BifocalException.of(ErrorCode.WRONG_THREAD, what, "another thread's arena", "shared")
          .causedBy(thrown);
    }
    for (MemorySegment segment : memory) {
      if (!segment.scope().isAlive()) {
        return BifocalException.of(ErrorCode.CLOSED, what + " was released").causedBy(thrown);
      }
    }
    return thrown;
  }

  private void requireContract(KvCacheView view) {
    view.requireOpen();
    if (!view.spec().equals(cache)) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE, "cache of group " + group.name(), view.spec(), cache);
    }
  }
}

package bifocal.composite;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionObserver;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.cache.KvCacheView;
import bifocal.core.tensor.TensorView;

/**
 * Runs one child's implementation. Observers hear of it, unless the child is a composite: then they
 * hear of its own children.
 */
final class ChildImpl<M extends AttentionMetadata> {
  private final BackendName name;
  private final boolean leaf;
  private final AttentionImpl<M> impl;

  ChildImpl(AttentionBackend<M> backend, AttentionImpl<M> impl) {
    this.name = backend.name();
    this.leaf = !(backend instanceof CompositeBackend<?, ?>);
    this.impl = impl;
  }

  AttentionImpl<M> impl() {
    return impl;
  }

  void forward(
      LaunchContext launch,
      TensorView q,
      KvCacheView cache,
      ChildRun<M> run,
      AttentionOutput output) {
    AttentionObserver observer = launch.observer();
    boolean observed = leaf && observer.enabled();
    long start = observed ? System.nanoTime() : 0;
    try {
      switch (run.rows()) {
        case QueryRows.InPlace inPlace -> impl.forward(launch, q, cache, run.metadata(), output);
        case PackedRows packed -> packed.forward(impl, launch, q, cache, run.metadata(), output);
      }
    } catch (RuntimeException | Error failure) {
      run.workspace().markDirty();
      throw failure;
    }
    if (observed) {
      report(observer, run, start);
    }
  }

  void forwardUncached(
      LaunchContext launch, TensorView q, KvInput kv, ChildRun<M> run, AttentionOutput output) {
    AttentionObserver observer = launch.observer();
    boolean observed = leaf && observer.enabled();
    long start = observed ? System.nanoTime() : 0;
    try {
      impl.forwardUncached(launch, q, kv, run.metadata(), output);
    } catch (RuntimeException | Error failure) {
      run.workspace().markDirty();
      throw failure;
    }
    if (observed) {
      report(observer, run, start);
    }
  }

  private void report(AttentionObserver observer, ChildRun<M> run, long start) {
    observer.forwarded(
        name,
        run.group(),
        run.requests(),
        run.queryTokens(),
        run.metadata().kernels(),
        System.nanoTime() - start);
  }
}

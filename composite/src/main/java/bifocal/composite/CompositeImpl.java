package bifocal.composite;

import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.lifecycle.InFlight;
import bifocal.core.tensor.TensorView;

/** Runs a layer on the children that the metadata names; child A writes every cache. */
final class CompositeImpl<MA extends AttentionMetadata, MB extends AttentionMetadata>
    implements AttentionImpl<CompositeMetadata<MA, MB>> {
  private final ChildImpl<MA> a;
  private final ChildImpl<MB> b;
  private final InFlight calls = new InFlight("the layer of a composite");

  CompositeImpl(ChildImpl<MA> a, ChildImpl<MB> b) {
    this.a = a;
    this.b = b;
  }

  @Override
  public void writeKv(LaunchContext launch, KvInput input, KvCacheView cache, SlotMapping slots) {
    launch.requireOwner();
    calls.enter();
    try {
      a.impl().writeKv(launch, input, cache, slots);
    } finally {
      calls.leave();
    }
  }

  @Override
  public void forward(
      LaunchContext launch,
      TensorView q,
      KvCacheView cache,
      CompositeMetadata<MA, MB> metadata,
      AttentionOutput output) {
    launch.requireOwner();
    calls.enter();
    try {
      run(launch, q, cache, metadata, output);
    } finally {
      calls.leave();
    }
  }

  private void run(
      LaunchContext launch,
      TensorView q,
      KvCacheView cache,
      CompositeMetadata<MA, MB> metadata,
      AttentionOutput output) {
    switch (metadata) {
      case CompositeMetadata.Idle<MA, MB> idle -> {}
      case CompositeMetadata.OnChildA<MA, MB> on -> a.forward(launch, q, cache, on.run(), output);
      case CompositeMetadata.OnChildB<MA, MB> on -> b.forward(launch, q, cache, on.run(), output);
      case CompositeMetadata.Split<MA, MB> split -> {
        a.forward(launch, q, cache, split.runA(), output);
        b.forward(launch, q, cache, split.runB(), output);
      }
      case CompositeMetadata.Lowered<MA, MB> lowered ->
          b.forward(launch, q, cache, lowered.run(), output);
    }
  }

  @Override
  public void forwardUncached(
      LaunchContext launch,
      TensorView q,
      KvInput kv,
      CompositeMetadata<MA, MB> metadata,
      AttentionOutput output) {
    launch.requireOwner();
    calls.enter();
    try {
      runUncached(launch, q, kv, metadata, output);
    } finally {
      calls.leave();
    }
  }

  private void runUncached(
      LaunchContext launch,
      TensorView q,
      KvInput kv,
      CompositeMetadata<MA, MB> metadata,
      AttentionOutput output) {
    switch (metadata) {
      case CompositeMetadata.Idle<MA, MB> idle -> {}
      case CompositeMetadata.OnChildA<MA, MB> on ->
          a.forwardUncached(launch, q, kv, on.run(), output);
      case CompositeMetadata.OnChildB<MA, MB> on ->
          b.forwardUncached(launch, q, kv, on.run(), output);
      case CompositeMetadata.Split<MA, MB> split -> throw needsCache(split);
      case CompositeMetadata.Lowered<MA, MB> lowered -> throw needsCache(lowered);
    }
  }

  private static BifocalException needsCache(CompositeMetadata<?, ?> metadata) {
    return BifocalException.of(
        ErrorCode.UNSUPPORTED,
        "attention without a KV cache",
        "route " + metadata.route().label(),
        "the whole batch on one child, since keys and values lie in the order of the requests");
  }

  @Override
  public void close() {
    if (!calls.close()) {
      return;
    }
    try {
      a.impl().close();
    } finally {
      b.impl().close();
    }
  }
}

package bifocal.cli.attend;

import bifocal.cli.backend.RunDevice;
import bifocal.composite.CompositeMetadata;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.BlockTable;
import bifocal.core.cache.KvBlocks;
import bifocal.core.cache.KvCachePool;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.route.Route;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * One case through one backend, as an engine runs a step: leased blocks of a paged cache, all keys
 * and values written by slot, metadata built from the batch, one forward.
 *
 * @param batch the batch as it was built
 * @param output what the forward wrote
 * @param route where the batch went, absent when the backend does not route
 * @param times how long it took
 */
record AttendRun(
    CommonAttentionMetadata batch, AttentionOutput output, Option<Route> route, Times times) {
  private static final String GROUP = "attend";
  private static final long ALIGNMENT = 256;

  /** Nanoseconds of each part. */
  record Times(long write, long build, long forward) {}

  /**
   * Runs.
   *
   * @param lse whether the log-sum-exp is wanted
   * @param device where kernels run
   * @param owner of the output's memory
   */
  static <M extends AttentionMetadata> AttendRun of(
      AttendCase given,
      AttentionBackend<M> backend,
      KvCacheSpec spec,
      boolean lse,
      RunDevice device,
      Arena owner) {
    LayerGroup group = LayerGroup.of(GROUP, given.layer());
    try (KvCachePool pool = device.pool(Vector.of(blocks(given, spec)));
        BlockTable table = table(given, pool.group(GROUP))) {
      long[] slots = slots(given, table, owner);
      CommonAttentionMetadata batch = batch(given, table, slots, owner);
      batch.requireWholeImages(group.mask());
      AttentionOutput output = output(given.layer(), given.q().size(0), lse, owner);
      return run(given, backend, group, pool.group(GROUP), batch, slots, output, device, owner);
    }
  }

  private static <M extends AttentionMetadata> AttendRun run(
      AttendCase given,
      AttentionBackend<M> backend,
      LayerGroup group,
      KvBlocks blocks,
      CommonAttentionMetadata batch,
      long[] slots,
      AttentionOutput output,
      RunDevice device,
      Arena owner) {
    KvCacheSpec spec = blocks.spec();
    LaunchContext launch = device.launch();
    TensorView q = device.copy("queries", given.q());
    KvInput.Dense kv =
        new KvInput.Dense(device.copy("keys", given.k()), device.copy("values", given.v()));
    DeviceOutput result = DeviceOutput.of(device, given.layer().dtype(), output, owner);
    BatchLimits limits =
        new BatchLimits(
            Math.max(1, given.seqLens().length),
            Math.max(1, batch.tokens()),
            Math.max(1, given.maxSeqLen()));
    WorkspacePlan plan = backend.workspace(group, spec, limits);
    try (AttentionMetadataBuilder<M> builder = backend.createBuilder(group, spec);
        AttentionImpl<M> impl =
            backend.createImpl(group.spec(), onDevice(given.parameters(), device), spec);
        Workspace workspace = device.workspace(plan);
        Workspace.Step step = workspace.openStep()) {
      long start = System.nanoTime();
      impl.writeKv(launch, kv, blocks.view(GROUP), slotMapping(slots, owner));
      device.synchronize();
      long written = System.nanoTime();
      M metadata = builder.build(new StepContext(launch, step, 0), group, batch);
      long built = System.nanoTime();
      impl.forward(launch, q, blocks.view(GROUP), metadata, result.onDevice());
      device.synchronize();
      long done = System.nanoTime();
      result.fetch(device);
      return new AttendRun(
          batch,
          output,
          route(metadata),
          new Times(written - start, built - written, done - built));
    }
  }

  private static LayerParameters onDevice(LayerParameters host, RunDevice device) {
    return new LayerParameters(
        host.sinks().map(sinks -> device.copy("sinks", sinks)),
        host.alibiSlopes().map(slopes -> device.copy("ALiBi slopes", slopes)));
  }

  private static Option<Route> route(AttentionMetadata metadata) {
    return metadata instanceof CompositeMetadata<?, ?> composite
        ? Option.some(composite.route())
        : Option.none();
  }

  private static KvCachePool.Group blocks(AttendCase given, KvCacheSpec spec) {
    long needed = 1;
    for (int seqLen : given.seqLens()) {
      needed += spec.blocksFor(seqLen);
    }
    if (needed > Integer.MAX_VALUE) {
      throw BifocalException.of(
          ErrorCode.OVERFLOW, "blocks of the cache", needed, "at most " + Integer.MAX_VALUE);
    }
    return new KvCachePool.Group(GROUP, Vector.of(GROUP), spec, (int) Math.max(2, needed));
  }

  private static BlockTable table(AttendCase given, KvBlocks blocks) {
    return BlockTable.allocate(
        blocks, Math.max(1, given.seqLens().length), Math.max(1, given.maxSeqLen()));
  }

  /** Slot of each key, requests back to back. */
  private static long[] slots(AttendCase given, BlockTable table, Arena owner) {
    int keys = Math.toIntExact(given.k().size(0));
    MemorySegment memory = owner.allocate(ValueLayout.JAVA_LONG, Math.max(1, keys));
    int first = 0;
    for (int r = 0; r < given.seqLens().length; r++) {
      table.append(r, given.seqLens()[r], memory, first);
      first += given.seqLens()[r];
    }
    long[] slots = new long[keys];
    MemorySegment.copy(memory, ValueLayout.JAVA_LONG, 0, slots, 0, keys);
    return slots;
  }

  private static CommonAttentionMetadata batch(
      AttendCase given, BlockTable table, long[] slots, Arena owner) {
    int requests = given.seqLens().length;
    int[] starts = new int[requests + 1];
    long[] own = new long[Math.toIntExact(given.q().size(0))];
    int keys = 0;
    for (int r = 0; r < requests; r++) {
      int queries = given.queryLens()[r];
      starts[r + 1] = starts[r] + queries;
      keys += given.seqLens()[r];
      System.arraycopy(slots, keys - queries, own, starts[r], queries);
    }
    return CommonAttentionMetadata.builder(
            starts, given.seqLens(), table.tensor(), slotMapping(own, owner))
        .images(given.images())
        .build();
  }

  private static SlotMapping slotMapping(long[] slots, Arena owner) {
    MemorySegment memory = owner.allocateFrom(ValueLayout.JAVA_LONG, slots);
    return new SlotMapping(TensorView.ofHost(memory, DType.INT64, slots.length));
  }

  private static AttentionOutput output(Dense layer, long tokens, boolean lse, Arena owner) {
    return new AttentionOutput(
        floats(owner, tokens, layer.numHeads(), layer.headSizeV()),
        Option.when(lse, () -> floats(owner, tokens, layer.numHeads())));
  }

  /** Numbers that are NaN until they are written. */
  private static TensorView floats(Arena owner, long... shape) {
    long elements = 1;
    for (long size : shape) {
      elements = Math.multiplyExact(elements, size);
    }
    MemorySegment memory =
        owner.allocate(Math.multiplyExact(elements, (long) Float.BYTES), ALIGNMENT);
    memory.fill((byte) 0xFF);
    return TensorView.ofHost(memory, DType.FP32, shape);
  }
}

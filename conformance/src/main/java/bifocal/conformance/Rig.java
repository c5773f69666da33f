package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.conformance.BatchPlan.Request;
import bifocal.conformance.ValueSource.Kind;
import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.util.function.UnaryOperator;

/**
 * One layer with its cache and workspace on a device, driven as a host engine drives it: cached
 * tokens are written through the backend, each step is built, written and run, and outputs are
 * poisoned before. Between steps scratch memory is filled with rubbish.
 *
 * @param <M> metadata of the backend
 */
final class Rig<M extends AttentionMetadata> implements AutoCloseable {
  private static final int MOST_TOKENS = 4096;
  private static final int MOST_REQUESTS = 512;
  static final int UNUSED_ROWS = 2;

  private final Setup setup;
  private final TestDevice device;
  private final Tensors tensors;
  private final LayerGroup group;
  private final KvCacheSpec spec;
  private final Blocks blocks;
  private final WorkspacePlan plan;
  private final Workspace workspace;
  private final AttentionMetadataBuilder<M> builder;
  private final AttentionImpl<M> impl;
  private final AttentionImpl<?> writer;
  private final LayerParameters hostParameters;
  private final boolean indirect;
  private final boolean returnsLse;
  private final boolean lseBase2;
  private final int[] written;
  private long steps;
  private int open;

  private Rig(
      AttentionBackend<M> backend,
      AttentionBackend<?> writer,
      AttentionRequest request,
      KvCacheSpec spec,
      TestDevice device,
      Setup setup) {
    this.setup = setup;
    this.spec = spec;
    this.device = device;
    this.tensors = new Tensors(device, setup.values(), setup.layer());
    this.group = LayerGroup.of("conformance", setup.layer());
    this.blocks = Blocks.allocate(device, spec, setup);
    this.written = new int[setup.sequences()];
    FeatureSet features = backend.capabilities(request).all();
    this.indirect = features.has(Feature.INDIRECT_REQUESTS);
    this.lseBase2 = features.has(Feature.LSE_BASE_2) && !features.has(Feature.LSE);
    this.returnsLse = features.has(Feature.LSE) || lseBase2;
    this.hostParameters = tensors.hostParameters(setup.seed());
    this.plan =
        backend.workspace(
            group, spec, new BatchLimits(MOST_REQUESTS, MOST_TOKENS, setup.maxSeqLen()));
    MemorySegment memory = device.allocate(plan.totalBytes(setup.stepsInFlight()));
    this.workspace =
        Workspace.wrap(
            memory, plan, setup.stepsInFlight(), region -> Tensors.fill(device, region, 0));
    disturb(memory.byteSize());
    this.builder = backend.createBuilder(group, spec);
    LayerParameters parameters = tensors.onDevice(hostParameters);
    this.impl = backend.createImpl(setup.layer(), parameters, spec);
    this.writer = writer.createImpl(setup.layer(), parameters, spec);
  }

  /** Sets a backend up; its own capability of a layer is the caller's business. */
  static Rig<?> open(BackendContract contract, Setup setup) {
    return open(contract.backend(), contract.backend(), contract, setup);
  }

  /** Sets up two backends that share a cache: one writes it, the other reads it. */
  static <M extends AttentionMetadata> Rig<M> open(
      AttentionBackend<M> backend,
      AttentionBackend<?> writer,
      BackendContract contract,
      Setup setup) {
    KvCacheSpec spec = contract.cacheSpec(setup.layer(), setup.blockSize(), setup.scales());
    TestDevice device = setup.guarded() ? contract.openGuardedDevice() : contract.openDevice();
    try {
      AttentionRequest request = AttentionRequest.of(setup.layer(), contract.profile());
      return new Rig<>(backend, writer, request, spec, device, setup);
    } catch (RuntimeException e) {
      device.close();
      throw e;
    }
  }

  Dense layer() {
    return setup.layer();
  }

  KvCacheSpec spec() {
    return spec;
  }

  TestDevice device() {
    return device;
  }

  KvCacheView cache() {
    return blocks.view();
  }

  AttentionImpl<M> impl() {
    return impl;
  }

  /** Who writes the cache. */
  AttentionImpl<?> writer() {
    return writer;
  }

  /** Runs a batch as one step: builds, writes its tokens, runs, closes the step. */
  Outcome run(BatchPlan batch) {
    try (Step<M> step = build(batch)) {
      return step.run();
    }
  }

  /** The same for a host that asks for no log-sum-exp. */
  Outcome runWithoutLse(BatchPlan batch) {
    try (Step<M> step = build(batch)) {
      return step.run(Buffers::withoutLse);
    }
  }

  /** Runs some requests of a batch, or runs cut out of them. */
  Outcome run(BatchPlan batch, int[] source, UnaryOperator<CommonAttentionMetadata> cut) {
    try (Step<M> step = build(batch, source, cut)) {
      return step.run();
    }
  }

  /** Builds a batch and leaves the step open. */
  Step<M> build(BatchPlan batch) {
    int[] source = new int[batch.requests().size()];
    for (int request = 0; request < source.length; request++) {
      source[request] = request;
    }
    return build(batch, source, UnaryOperator.identity());
  }

  /**
   * Builds a part of a batch.
   *
   * @param source request of the whole batch that each request of the part comes from
   */
  Step<M> build(BatchPlan batch, int[] source, UnaryOperator<CommonAttentionMetadata> cut) {
    writeCachedTokens(batch);
    int lead = indirect ? UNUSED_ROWS : 0;
    HostBatch host = HostBatch.of(batch, lead, UNUSED_ROWS, spec, blocks);
    CommonAttentionMetadata whole = host.describe(device);
    CommonAttentionMetadata part = cut.apply(whole);
    Workspace.Step lease = workspace.openStep();
    open++;
    try {
      StepContext context = new StepContext(device.launch(), lease, steps++);
      return new Step<>(this, host, part, source, builder.build(context, group, part), lease);
    } catch (RuntimeException e) {
      lease.close();
      closed();
      throw e;
    }
  }

  /** Tokens of the batch that came before this step, written through the backend. */
  private void writeCachedTokens(BatchPlan batch) {
    for (Request request : batch.requests()) {
      int cached =
          batch.independentKeys() ? request.seqLen() : request.seqLen() - request.queryLen();
      int from = written[request.sequence()];
      if (cached > from) {
        writeTokens(request.sequence(), from, cached);
        written[request.sequence()] = cached;
      }
    }
  }

  /** Writes the tokens at positions {@code from} until {@code to} of a sequence. */
  void writeTokens(int sequence, int from, int to) {
    long[] slots = new long[to - from];
    for (int i = 0; i < slots.length; i++) {
      slots[i] = blocks.slot(sequence, from + i);
    }
    TensorView k = tensors.tokens(Kind.KEY, sequence, from, to);
    TensorView v = tensors.tokens(Kind.VALUE, sequence, from, to);
    writer.writeKv(device.launch(), new KvInput.Dense(k, v), blocks.view(), slotMapping(slots));
  }

  SlotMapping slotMapping(long... slots) {
    return new SlotMapping(Tensors.longs(device, slots));
  }

  /** Queries, keys, values and poisoned outputs of a batch. */
  Buffers buffers(HostBatch host) {
    DType outType = setup.outType().getOrElse(setup.layer().dtype());
    return new Buffers(
        tensors.queries(host),
        new KvInput.Dense(tensors.rows(Kind.KEY, host), tensors.rows(Kind.VALUE, host)),
        slotMapping(host.slots()),
        output(host.rows(), outType));
  }

  private AttentionOutput output(int rows, DType outType) {
    Dense layer = setup.layer();
    TensorView out = tensors.poisoned(outType, rows, layer.numHeads(), layer.headSizeV());
    return new AttentionOutput(
        out,
        returnsLse
            ? Option.some(tensors.poisoned(DType.FP32, rows, layer.numHeads()))
            : Option.none());
  }

  /** What a step takes and writes, on the device. */
  record Buffers(TensorView q, KvInput.Dense kv, SlotMapping slots, AttentionOutput output) {
    Buffers withoutLse() {
      return new Buffers(q, kv, slots, AttentionOutput.of(output.out()));
    }
  }

  /** Keys and values of whole sequences, back to back, for attention without a cache. */
  KvInput.Dense uncached(HostBatch host) {
    return new KvInput.Dense(
        tensors.sequences(Kind.KEY, host), tensors.sequences(Kind.VALUE, host));
  }

  Outcome outcome(Step<?> step, Buffers buffers) {
    return new Outcome(
        step,
        Tensors.toHost(device, buffers.output().out()),
        buffers.output().lse().map(lse -> Tensors.toHost(device, lse)),
        lseBase2);
  }

  LayerParameters hostParameters() {
    return hostParameters;
  }

  Setup setup() {
    return setup;
  }

  Tensors tensors() {
    return tensors;
  }

  Blocks blocks() {
    return blocks;
  }

  void wrote(BatchPlan batch) {
    for (Request request : batch.requests()) {
      written[request.sequence()] = Math.max(written[request.sequence()], request.seqLen());
    }
  }

  /** Fills scratch memory with rubbish, as another backend may at any time. */
  void disturbScratch() {
    disturb(plan.zeroedBytes() + plan.scratchBytes());
  }

  /** Ends a step; with the last one, what steps leased is full of rubbish again. */
  void closed() {
    if (--open == 0) {
      disturb(workspace.memory().byteSize());
    }
  }

  private void disturb(long until) {
    long from = plan.zeroedBytes();
    Tensors.fill(device, workspace.memory().asSlice(from, until - from), 0xFF);
  }

  /** Requires that regions that must be zero between runs are zero. */
  void requireZeroedRegions() {
    assertThat(Tensors.isZero(device, workspace.memory().asSlice(0, plan.zeroedBytes())))
        .as("zeroed workspace regions are restored")
        .isTrue();
  }

  @Override
  public void close() {
    writer.close();
    impl.close();
    builder.close();
    workspace.close();
    blocks.close();
    device.close();
  }
}

package bifocal.cpu.attention;

import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.CacheBounds;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.cpu.cache.KernelType;
import bifocal.cpu.ffi.HeldMemory;
import bifocal.cpu.kernel.AttendParams;
import bifocal.cpu.kernel.KvWriteParams;
import bifocal.cpu.memory.LayerMemory;
import bifocal.cpu.raw.RawMemory;

/**
 * Runs one layer on the CPU. Every shape, type and bound is checked here, before a kernel sees an
 * address, and the memory of the cache, the tensors and the step is held until the kernels are
 * done.
 */
final class CpuAttentionImpl implements AttentionImpl<CpuAttentionMetadata> {
  /** Bytes of keys and values below which one thread writes them. */
  private static final long SMALL_WRITE = 256 * 1024;

  private final CpuRuntime runtime;
  private final AttentionLayerSpec.Dense layer;
  private final KernelType type;
  private final KvCacheSpec cache;
  private final long blockBytes;
  private final long valueOffset;
  private final UncachedKeys uncachedKeys;
  private final LayerMemory memory;
  private final WriteJob writeJob;
  private final WriteJob packJob;
  private final HeldRun heldRun;

  CpuAttentionImpl(
      CpuRuntime runtime,
      AttentionLayerSpec.Dense layer,
      LayerParameters parameters,
      KvCacheSpec cache) {
    this.runtime = runtime;
    this.layer = layer;
    this.type = KernelType.of(layer.dtype()).get();
    this.cache = cache;
    this.blockBytes = cache.blockBytes();
    this.valueOffset = cache.layout().valueOffset(cache);
    this.uncachedKeys = UncachedKeys.of(layer);
    this.memory = new LayerMemory(layer, parameters, cache, uncachedKeys.spec());
    this.writeJob = new WriteJob(runtime.kernels(), memory.write());
    this.packJob = new WriteJob(runtime.kernels(), memory.pack());
    this.heldRun = new HeldRun(runtime);
  }

  @Override
  public void writeKv(LaunchContext launch, KvInput input, KvCacheView view, SlotMapping slots) {
    launch.requireOwner();
    memory.held().begin();
    try {
      prepareWrite(input, view, slots);
      memory.held().run(heldRun);
    } catch (IllegalStateException | WrongThreadException released) {
      throw HeldMemory.refusal("keys and values of a step", released);
    } finally {
      memory.held().end();
    }
  }

  private void prepareWrite(KvInput input, KvCacheView view, SlotMapping slots) {
    long base = requireCache(view);
    KvInput.Dense dense = requireDense(input);
    long tokens = slots.tokens();
    requireTokens(dense.k(), "keys", tokens, layer.headSize());
    requireTokens(dense.v(), "values", tokens, layer.headSizeV());
    long slotsAt = requireSlots(slots, view);
    KvWriteParams params = memory.write();
    params.cache(base, base + valueOffset, view.blockStride());
    params.tokens(
        dense.k().address(),
        dense.k().stride(0),
        dense.v().address(),
        dense.v().stride(0),
        slotsAt);
    memory.held().add(view.memory());
    memory.held().add(dense.k().data());
    memory.held().add(dense.v().data());
    memory.held().add(slots.slots().data());
    heldRun.write(writeJob.of(tokens), tokens, workers(tokens));
  }

  @Override
  public void forward(
      LaunchContext launch,
      TensorView q,
      KvCacheView view,
      CpuAttentionMetadata built,
      AttentionOutput output) {
    launch.requireOwner();
    memory.held().begin();
    try {
      prepareCached(q, view, current(built), output);
      memory.held().run(heldRun);
    } catch (IllegalStateException | WrongThreadException released) {
      throw HeldMemory.refusal("a step", released);
    } finally {
      memory.held().end();
    }
  }

  private void prepareCached(
      TensorView q, KvCacheView view, StepPlan metadata, AttentionOutput output) {
    long base = requireCache(view);
    if (metadata.largestBlock() >= view.numBlocks()) {
      throw BifocalException.of(
          ErrorCode.BLOCK_OUT_OF_RANGE,
          "block of the block table",
          metadata.largestBlock(),
          "0.." + (view.numBlocks() - 1));
    }
    AttendParams params = memory.cached();
    params.cache(base, base + valueOffset, view.blockStride());
    memory.held().add(view.memory());
    prepare(q, params, metadata, metadata.table(), output);
  }

  @Override
  public void forwardUncached(
      LaunchContext launch,
      TensorView q,
      KvInput kv,
      CpuAttentionMetadata built,
      AttentionOutput output) {
    launch.requireOwner();
    memory.held().begin();
    try {
      prepareUncached(q, requireDense(kv), current(built), output);
      memory.held().run(heldRun);
    } catch (IllegalStateException | WrongThreadException released) {
      throw HeldMemory.refusal("a step", released);
    } finally {
      memory.held().end();
    }
  }

  private void prepareUncached(
      TensorView q, KvInput.Dense dense, StepPlan metadata, AttentionOutput output) {
    StepPlan.PackedKeys packed = metadata.packed();
    if (packed.tokens() < 0) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED,
          "attention without a KV cache",
          layer.type().label(),
          "encoder or encoder_only");
    }
    requireTokens(dense.k(), "keys", packed.tokens(), layer.headSize());
    requireTokens(dense.v(), "values", packed.tokens(), layer.headSizeV());
    KvCacheSpec spec = uncachedKeys.spec();
    long bytes = packed.blocks() * spec.blockBytes();
    long base =
        CpuMetadataBuilder.aligned(
            RawMemory.address(
                "scratch of uncached keys",
                metadata.packedMemory(),
                0,
                bytes + CpuMetadataBuilder.ALIGNMENT));
    long values = base + spec.layout().valueOffset(spec);
    memory.pack().cache(base, values, spec.blockBytes());
    memory
        .pack()
        .tokens(
            dense.k().address(),
            dense.k().stride(0),
            dense.v().address(),
            dense.v().stride(0),
            packed.slots());
    memory.uncached().cache(base, values, spec.blockBytes());
    memory.held().add(dense.k().data());
    memory.held().add(dense.v().data());
    prepare(q, memory.uncached(), metadata, packed.table(), output);
    heldRun.packBefore(packJob.of(packed.tokens()), packed.tokens(), workers(packed.tokens()));
  }

  @Override
  public void close() {
    memory.close();
  }

  /** Threads that are worth their while to write so many tokens. */
  private int workers(long tokens) {
    long bytes =
        tokens
            * cache.numKvHeads()
            * (layer.headSize() + layer.headSizeV())
            * layer.dtype().bytes();
    return bytes < SMALL_WRITE ? 1 : runtime.threads().threads();
  }

  private void prepare(
      TensorView q,
      AttendParams params,
      StepPlan metadata,
      StepPlan.BlockTable table,
      AttentionOutput output) {
    requireRows(q, "queries", metadata.tokens(), layer.headSize());
    requireType(q, "queries", layer.dtype());
    params.queries(q.address(), q.stride(0));
    setOutput(params, metadata, output);
    params.batch(table.address(), table.stride(), metadata.keyFirst(), metadata.keyLast());
    setPartials(params, metadata);
    memory.held().add(q.data());
    memory.held().add(metadata.lease());
    memory.held().add(metadata.packedMemory());
    memory.held().add(metadata.partials());
    heldRun.attend(params, metadata);
  }

  private void setOutput(AttendParams params, StepPlan metadata, AttentionOutput output) {
    TensorView out = output.out();
    requireRows(out, "output", metadata.tokens(), layer.headSizeV());
    if (out.dtype() != layer.dtype() && out.dtype() != DType.FP32) {
      throw BifocalException.of(
          ErrorCode.DTYPE_MISMATCH, "output", out.dtype(), layer.dtype() + " or fp32");
    }
    long lse = 0;
    long lseStride = 0;
    if (output.lse().isDefined()) {
      TensorView view = output.lse().get();
      requireLse(view, metadata.tokens());
      lse = view.address();
      memory.held().add(view.data());
      lseStride = view.stride(0);
    }
    memory.held().add(out.data());
    params.output(
        out.dtype() == DType.FP32 ? KernelType.FLOAT32 : type,
        out.address(),
        out.stride(0),
        lse,
        lseStride);
  }

  private void setPartials(AttendParams params, StepPlan metadata) {
    long rows = metadata.partialRows();
    if (rows > 0) {
      long out =
          CpuMetadataBuilder.aligned(
              RawMemory.address("partial results", metadata.partials(), 0, 0));
      params.partials(out, out + 4 * rows * layer.headSizeV());
    }
  }

  private long requireCache(KvCacheView view) {
    if (!view.spec().equals(cache)) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE, "contract of a KV cache", view.spec(), cache);
    }
    if (!view.device().hostReadable()) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, "KV cache", view.device(), "memory of the host");
    }
    view.requireOpen();
    return RawMemory.address(
        "KV cache", view.memory(), 0, (view.numBlocks() - 1) * view.blockStride() + blockBytes);
  }

  private static StepPlan current(CpuAttentionMetadata metadata) {
    return switch (metadata) {
      case StepPlan plan -> {
        plan.requireCurrent();
        yield plan;
      }
    };
  }

  private static KvInput.Dense requireDense(KvInput input) {
    return switch (input) {
      case KvInput.Dense dense -> dense;
      case KvInput.Latent latent ->
          throw BifocalException.of(
              ErrorCode.MLA_NOT_EXECUTABLE, "latent keys on the CPU", "ckv", "keys and values");
    };
  }

  private void requireTokens(TensorView view, String what, long tokens, int headSize) {
    requireType(view, what, layer.dtype());
    requireShape(view, what, tokens, cache.numKvHeads(), headSize);
  }

  private void requireRows(TensorView view, String what, int tokens, int headSize) {
    requireShape(view, what, tokens, layer.numHeads(), headSize);
  }

  private static void requireType(TensorView view, String what, DType wanted) {
    if (view.dtype() != wanted) {
      throw BifocalException.of(ErrorCode.DTYPE_MISMATCH, what, view.dtype(), wanted);
    }
  }

  private static void requireShape(
      TensorView view, String what, long tokens, int heads, int headSize) {
    requireHost(view, what);
    boolean fits =
        view.rank() == 3
            && view.size(0) >= tokens
            && view.size(1) == heads
            && view.size(2) == headSize;
    if (!fits) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          what,
          view,
          "[at least " + tokens + ", " + heads + ", " + headSize + "]");
    }
    if (view.stride(2) != 1 || (heads > 1 && view.stride(1) != headSize)) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "strides of " + what,
          view.stride(1) + ", " + view.stride(2),
          "the heads of a token one after another");
    }
  }

  private void requireLse(TensorView view, int tokens) {
    requireHost(view, "log-sum-exp");
    requireType(view, "log-sum-exp", DType.FP32);
    boolean fits =
        view.rank() == 2
            && view.size(0) >= tokens
            && view.size(1) == layer.numHeads()
            && (layer.numHeads() == 1 || view.stride(1) == 1);
    if (!fits) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "log-sum-exp",
          view,
          "[at least " + tokens + ", " + layer.numHeads() + "]");
    }
  }

  private static void requireHost(TensorView view, String what) {
    if (!view.device().hostReadable()) {
      throw BifocalException.of(
          ErrorCode.DEVICE_MISMATCH, what, view.device(), "memory of the host");
    }
    RawMemory.address(what, view.data(), 0, 0);
  }

  private static long requireSlots(SlotMapping slots, KvCacheView view) {
    TensorView tensor = slots.slots();
    requireHost(tensor, "slot mapping");
    if (tensor.size(0) > 1 && tensor.stride(0) != 1) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "stride of the slot mapping", tensor.stride(0), 1);
    }
    CacheBounds.requireInside(slots, view.numBlocks(), view.spec().blockSize());
    return tensor.address();
  }
}

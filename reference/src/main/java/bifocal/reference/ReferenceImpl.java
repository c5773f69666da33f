package bifocal.reference;

import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.KvInput;
import bifocal.core.backend.LaunchContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.SlotMapping;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvCacheView;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.ValueLayout;

/** One layer of the reference backend. */
final class ReferenceImpl implements AttentionImpl<ReferenceMetadata> {
  private final ReferenceAttention attention;
  private final AttentionLayerSpec.Dense layer;
  private final KvCacheSpec contract;

  ReferenceImpl(ReferenceAttention attention, KvCacheSpec contract) {
    this.attention = attention;
    this.layer = attention.layer();
    this.contract = contract;
  }

  @Override
  public void writeKv(LaunchContext launch, KvInput input, KvCacheView cache, SlotMapping slots) {
    launch.requireOwner();
    requireContract(cache);
    KvInput.Dense dense = requireDense(input);
    long tokens = slots.tokens();
    requireKv("k", dense.k(), tokens, layer.headSize());
    requireKv("v", dense.v(), tokens, layer.headSizeV());
    for (long token = 0; token < tokens; token++) {
      requireSlot(token, slot(slots, token), cache);
    }
    HostTensor k = HostTensor.over(dense.k());
    HostTensor v = HostTensor.over(dense.v());
    KvCacheView.TokenAccess access = cache.tokens(contract.layout());
    float[] key = new float[layer.headSize()];
    float[] value = new float[layer.headSizeV()];
    for (long token = 0; token < tokens; token++) {
      long slot = slot(slots, token);
      for (int head = 0; slot >= 0 && head < layer.numKvHeads(); head++) {
        read(k, token, head, key);
        read(v, token, head, value);
        access.write(slot, head, key, value);
      }
    }
  }

  @Override
  public void forward(
      LaunchContext launch,
      TensorView q,
      KvCacheView cache,
      ReferenceMetadata metadata,
      AttentionOutput output) {
    launch.requireOwner();
    requireContract(cache);
    requireOutput(output, metadata.batch());
    write(attention.all(q, KeyValues.cached(cache, metadata.batch()), metadata.batch()), output);
  }

  @Override
  public void forwardUncached(
      LaunchContext launch,
      TensorView q,
      KvInput kv,
      ReferenceMetadata metadata,
      AttentionOutput output) {
    launch.requireOwner();
    KvInput.Dense dense = requireDense(kv);
    requireKv("k", dense.k(), -1, layer.headSize());
    requireKv("v", dense.v(), -1, layer.headSizeV());
    requireOutput(output, metadata.batch());
    KeyValues found = KeyValues.dense(dense.k(), dense.v(), metadata.batch());
    write(attention.all(q, found, metadata.batch()), output);
  }

  private static void write(Iterable<ReferenceRow> rows, AttentionOutput output) {
    HostTensor out = HostTensor.over(output.out());
    for (ReferenceRow row : rows) {
      for (int d = 0; d < row.out().length; d++) {
        out.put((float) row.out()[d], row.at().queryToken(), row.at().head(), d);
      }
      output
          .lse()
          .map(HostTensor::over)
          .forEach(lse -> lse.put((float) row.lse(), row.at().queryToken(), row.at().head()));
    }
  }

  private void requireOutput(AttentionOutput output, CommonAttentionMetadata batch) {
    TensorView out = output.out();
    DType type = out.dtype() == DType.FP32 ? DType.FP32 : layer.dtype();
    out.require("out", type, Device.HOST, -1, layer.numHeads(), layer.headSizeV());
    requireRows("out", out, batch);
    for (TensorView lse : output.lse()) {
      lse.require("lse", DType.FP32, Device.HOST, -1, layer.numHeads());
      requireRows("lse", lse, batch);
    }
  }

  private static void requireRows(String name, TensorView tensor, CommonAttentionMetadata batch) {
    if (tensor.size(0) < batch.tokens()) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "rows of " + name,
          tensor.size(0),
          "at least " + batch.tokens());
    }
  }

  private void requireKv(String name, TensorView tensor, long tokens, int headSize) {
    tensor.require(name, layer.dtype(), Device.HOST, tokens, layer.numKvHeads(), headSize);
  }

  private void requireContract(KvCacheView cache) {
    cache.requireOpen();
    if (!cache.spec().equals(contract)) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE, "contract of a KV cache", cache.spec(), contract);
    }
  }

  private static KvInput.Dense requireDense(KvInput input) {
    return switch (input) {
      case KvInput.Dense dense -> dense;
      case KvInput.Latent latent ->
          throw BifocalException.of(
              ErrorCode.MLA_NOT_EXECUTABLE, "keys and values", "latent", "dense");
    };
  }

  private static void requireSlot(long token, long slot, KvCacheView cache) {
    long size = cache.spec().blockSize();
    long end = cache.numBlocks() * size;
    if (slot != SlotMapping.PADDING && (slot < size || slot >= end)) {
      throw BifocalException.of(
          ErrorCode.SLOT_OUT_OF_RANGE,
          "slot of token " + token,
          slot,
          "-1, or " + size + ".." + (end - 1) + " (block 0 is never written)");
    }
  }

  private static long slot(SlotMapping slots, long token) {
    TensorView view = slots.slots();
    return view.data().get(ValueLayout.JAVA_LONG_UNALIGNED, token * view.stride(0) * Long.BYTES);
  }

  private static void read(HostTensor tensor, long token, int head, float[] into) {
    for (int d = 0; d < into.length; d++) {
      into[d] = tensor.at(token, head, d);
    }
  }
}

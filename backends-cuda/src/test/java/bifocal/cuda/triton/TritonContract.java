package bifocal.cuda.triton;

import bifocal.composite.CompositeBackends;
import bifocal.conformance.BackendContract;
import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvLayouts;
import bifocal.core.cache.KvScales;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.HashSet;
import io.vavr.control.Option;

/**
 * A child of {@code TRITON_ATTN}, or a pair of them, on a device.
 *
 * @param backend what is tested
 * @param device with its kernels
 * @param layout of the cache
 * @param tablesOnHost whether block tables and slots are in host memory
 */
record TritonContract(
    AttentionBackend<?> backend, TritonDevice device, KvLayout layout, boolean tablesOnHost)
    implements BackendContract {

  /** What runs a batch. */
  enum Kind {
    GENERAL,
    CAUSAL,
    /** A pair that divides batches by request. */
    SPLIT,
    /** A pair that sends whole batches. */
    WHOLE,
    /** A pair whose fast child computes images as runs. */
    LOWERED
  }

  static TritonContract of(Kind kind, TritonDevice device) {
    return new TritonContract(backend(kind, TritonHost.with(device)), device, KvLayouts.NHD, true);
  }

  TritonContract over(KvLayout other, boolean hostTables) {
    return new TritonContract(backend, device, other, hostTables);
  }

  static AttentionBackend<?> backend(Kind kind, TritonHost host) {
    TritonAttnBackend general = new TritonAttnBackend(host);
    TritonCausalBackend causal = new TritonCausalBackend(host);
    MMPrefixAttentionRouting routing = new MMPrefixAttentionRouting();
    return switch (kind) {
      case GENERAL -> general;
      case CAUSAL -> causal;
      case SPLIT -> CompositeBackends.createCompositeBackendOrThrow(general, causal, routing);
      case WHOLE ->
          CompositeBackends.createCompositeBackendOrThrow(general, causal, routing.wholeBatch());
      case LOWERED ->
          CompositeBackends.createCompositeBackendOrThrow(
              general, causal, routing.withLowering(Lowering.BOTH_WINDOWS));
    };
  }

  @Override
  public DeviceProfile profile() {
    return device.context().device().profile(HashSet.empty());
  }

  @Override
  public TestDevice openDevice() {
    return new CudaTestDevice(device.context(), tablesOnHost);
  }

  @Override
  public KvCacheSpec cacheSpec(Dense layer, Option<Integer> blockSize, KvScales scales) {
    return new KvCacheSpec(
        layout,
        layer.kvCacheDtype().resolve(layer.dtype()),
        blockSize.get(),
        layer.numKvHeads(),
        layer.headSize(),
        layer.headSizeV(),
        scales);
  }
}

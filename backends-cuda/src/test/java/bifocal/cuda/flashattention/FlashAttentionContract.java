package bifocal.cuda.flashattention;

import bifocal.composite.CompositeBackends;
import bifocal.conformance.BackendContract;
import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KernelSettings.FlashAttentionVersion;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvScales;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.cuda.triton.CudaTestDevice;
import bifocal.cuda.triton.TritonAttnBackend;
import bifocal.cuda.triton.TritonHost;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.HashSet;
import io.vavr.control.Option;

/**
 * {@code FLASH_ATTN}, or a pair with {@code TRITON_ATTN}, on a device.
 *
 * @param backend what is tested
 * @param device with its forwards
 * @param layout of the cache
 * @param tablesOnHost whether block tables and slots are in host memory
 */
record FlashAttentionContract(
    AttentionBackend<?> backend, ForwardDevice device, KvLayout layout, boolean tablesOnHost)
    implements BackendContract {

  /** What runs a batch. */
  enum Kind {
    ALONE,
    /** A pair that divides batches by request. */
    SPLIT,
    /** A pair that sends whole batches. */
    WHOLE,
    /** A pair whose fast child computes images as runs. */
    LOWERED;

    boolean images() {
      return this != ALONE;
    }
  }

  static AttentionBackend<?> backend(Kind kind, ForwardDevice device) {
    FlashAttentionBackend fast = new FlashAttentionBackend(ForwardHost.with(device));
    TritonAttnBackend general = new TritonAttnBackend(TritonHost.with(device.kernels()));
    MMPrefixAttentionRouting routing = new MMPrefixAttentionRouting();
    return switch (kind) {
      case ALONE -> fast;
      case SPLIT -> CompositeBackends.createCompositeBackendOrThrow(general, fast, routing);
      case WHOLE ->
          CompositeBackends.createCompositeBackendOrThrow(general, fast, routing.wholeBatch());
      case LOWERED ->
          CompositeBackends.createCompositeBackendOrThrow(
              general, fast, routing.withLowering(Lowering.LEFT_WINDOW));
    };
  }

  /** Why a backend cannot run a layer here, in blocks of just this size. */
  static Option<String> missing(
      AttentionBackend<?> backend, ForwardDevice device, Dense layer, int blockSize) {
    Deployment version4 =
        Deployment.PLAIN.withKernels(
            Deployment.PLAIN.kernels().withFlashAttention(new FlashAttentionVersion(4, true)));
    AttentionRequest request =
        new AttentionRequest(layer, profile(device), Option.some(blockSize), version4);
    return new BackendValidator(BackendValidator.Scope.EXECUTION)
        .validate(backend, request)
        .fold(
            reasons -> Option.some(reasons.map(InvalidReason::text).mkString("; ")),
            accepted ->
                Option.when(
                    !accepted.features().blockSizes().kernelBlockFor(blockSize).contains(blockSize),
                    "no kernels for blocks of " + blockSize));
  }

  private static DeviceProfile profile(ForwardDevice device) {
    return device.context().device().profile(HashSet.of("fa4"));
  }

  @Override
  public DeviceProfile profile() {
    return profile(device);
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

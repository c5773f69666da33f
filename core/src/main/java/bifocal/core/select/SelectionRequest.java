package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.KernelSettings;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;

/**
 * A layer that wants a backend.
 *
 * @param attention the layer, its device, and what the engine asks
 * @param config what the user says
 * @param model what is known of the whole model
 * @param role whose layer it is
 * @param strictReference whether only what the reference says counts as support
 */
public record SelectionRequest(
    AttentionRequest attention,
    AttentionConfig config,
    ModelTraits model,
    Role role,
    boolean strictReference) {

  /** A layer of the target model on a device, of which nothing else is known or said. */
  public static SelectionRequest of(AttentionLayerSpec layer, DeviceProfile device) {
    return new SelectionRequest(
        AttentionRequest.of(layer, device),
        AttentionConfig.DEFAULT,
        ModelTraits.UNKNOWN,
        Role.TARGET,
        false);
  }

  /** The same layer under another configuration. */
  public SelectionRequest with(AttentionConfig other) {
    return new SelectionRequest(attention, other, model, role, strictReference);
  }

  /** The same layer, to be served by this backend or by none. */
  public SelectionRequest on(BackendName backend) {
    return with(AttentionConfig.builder().backend(backend.value()).build());
  }

  /** The same layer of a known model. */
  public SelectionRequest with(ModelTraits other) {
    return new SelectionRequest(attention, config, other, role, strictReference);
  }

  /** The same layer, asked for in other words. */
  public SelectionRequest with(AttentionRequest other) {
    return new SelectionRequest(other, config, model, role, strictReference);
  }

  /** The same layer of another role. */
  public SelectionRequest with(Role other) {
    return new SelectionRequest(attention, config, model, other, strictReference);
  }

  /** The same layer, to be served by what the reference says alone, or by all that runs. */
  public SelectionRequest strictly(boolean strict) {
    return new SelectionRequest(attention, config, model, role, strict);
  }

  /** What backends are asked: the layer and the engine, with the user's settings in force. */
  public AttentionRequest asked() {
    return new AttentionRequest(
        maskedAsSaid(attention.layer()),
        attention.device(),
        attention.blockSize(),
        ofRole(attention.deployment()).withKernels(kernels()));
  }

  /** A draft model is not sharded over the ranks that share a sequence. */
  private Deployment ofRole(Deployment deployment) {
    return switch (role) {
      case TARGET -> deployment;
      case DRAFT -> deployment.withDecodeContextParallel(1);
    };
  }

  private KernelSettings kernels() {
    KernelSettings given = attention.deployment().kernels();
    return new KernelSettings(
        config
            .flashAttnVersion()
            .map(number -> new KernelSettings.FlashAttentionVersion(number, true))
            .orElse(given.flashAttention()),
        config.useTrtllmAttention().orElse(given.trtllmAttention()),
        given.perSequenceCausal(),
        config.tritonFlashAttnAllowsFa3() || given.compositeTakesFlashAttention3(),
        new KernelSettings.Aiter(
            config.rocmUseAiter(),
            config.rocmUseAiterMha(),
            config.rocmUseAiterUnifiedAttention(),
            config.rocmUseAiterMla()),
        config.hisparseConfig().isDefined() || given.hierarchicalSparse());
  }

  private AttentionLayerSpec maskedAsSaid(AttentionLayerSpec layer) {
    boolean bothWays =
        config.useNonCausal() && layer.type() == AttentionType.DECODER && layer.mask().causal();
    if (!bothWays) {
      return layer;
    }
    AttentionMask mask = layer.mask();
    return masked(layer, new AttentionMask(false, mask.window(), ImageMask.NONE, mask.chunk()));
  }

  private static AttentionLayerSpec masked(AttentionLayerSpec layer, AttentionMask mask) {
    return switch (layer) {
      case AttentionLayerSpec.Dense dense -> dense.withMask(mask);
      case AttentionLayerSpec.Mla mla -> mla.withMask(mask);
      case AttentionLayerSpec.SparseMla sparse ->
          new AttentionLayerSpec.SparseMla(sparse.latent().withMask(mask), sparse.indexTopk());
      case AttentionLayerSpec.BlockSparse sparse ->
          new AttentionLayerSpec.BlockSparse(
              sparse.dense().withMask(mask), sparse.sparseBlockSize(), sparse.topkBlocks());
    };
  }
}

package bifocal.core.backend;

import io.vavr.control.Option;

/**
 * Which kernels of a family the user, or a policy of the model, wants. What is absent is decided by
 * the family's own rules.
 *
 * @param flashAttention wanted version of FlashAttention
 * @param trtllmAttention whether FlashInfer's TensorRT-LLM kernels must or must not run
 * @param perSequenceCausal whether each sequence of a batch has its own causal flag
 * @param compositeTakesFlashAttention3 whether the causal child of {@code TRITON_FLASH_ATTN} may be
 *     version 3
 * @param aiter switches of AMD's kernels
 * @param hierarchicalSparse whether sparse latent attention keeps part of its cache off the device
 */
public record KernelSettings(
    Option<FlashAttentionVersion> flashAttention,
    Option<Boolean> trtllmAttention,
    boolean perSequenceCausal,
    boolean compositeTakesFlashAttention3,
    Aiter aiter,
    boolean hierarchicalSparse) {

  /** Settings without hierarchical sparse attention. */
  public KernelSettings(
      Option<FlashAttentionVersion> flashAttention,
      Option<Boolean> trtllmAttention,
      boolean perSequenceCausal,
      boolean compositeTakesFlashAttention3,
      Aiter aiter) {
    this(
        flashAttention,
        trtllmAttention,
        perSequenceCausal,
        compositeTakesFlashAttention3,
        aiter,
        false);
  }

  /** Everything decided by the families. */
  public static final KernelSettings DEFAULT =
      new KernelSettings(Option.none(), Option.none(), false, false, Aiter.DEFAULT);

  /**
   * A wanted version of FlashAttention.
   *
   * @param number 2, 3 or 4
   * @param byUser whether the user wants it, so that no other may take its place; else a policy of
   *     the model prefers it
   */
  public record FlashAttentionVersion(int number, boolean byUser) {}

  /**
   * Switches of AMD's kernels.
   *
   * @param on the general switch
   * @param flashAttention switch of the flash attention kernel; counts when the general one is on
   * @param unified switch of the unified kernel alone, absent when the user leaves it as it is
   * @param latent switch of the latent decode kernels; counts when the general one is on
   */
  public record Aiter(boolean on, boolean flashAttention, Option<Boolean> unified, boolean latent) {
    /** Off; the flash attention kernel would follow the general switch. */
    public static final Aiter DEFAULT = new Aiter(false, true, Option.none(), true);
  }

  /** The same settings with a wanted version of FlashAttention. */
  public KernelSettings withFlashAttention(FlashAttentionVersion version) {
    return new KernelSettings(
        Option.some(version),
        trtllmAttention,
        perSequenceCausal,
        compositeTakesFlashAttention3,
        aiter,
        hierarchicalSparse);
  }
}

package bifocal.cuda.flashattention;

import bifocal.core.backend.AttentionMetadata;

/** A step of {@code FLASH_ATTN}: lists of runs and their blocks, on the device. */
public sealed interface FlashAttentionMetadata extends AttentionMetadata
    permits FlashAttentionStep {}

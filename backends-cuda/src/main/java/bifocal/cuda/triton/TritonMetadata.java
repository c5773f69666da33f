package bifocal.cuda.triton;

import bifocal.core.backend.AttentionMetadata;

/** A step of {@code TRITON_ATTN}: tiles, key intervals and a block table on the device. */
public sealed interface TritonMetadata extends AttentionMetadata permits TritonStep {}

package bifocal.cuda.flashinfer;

import bifocal.core.backend.AttentionMetadata;

/** A step of {@code FLASHINFER}: plans, and lists of pages on the device. */
public sealed interface FlashInferMetadata extends AttentionMetadata permits FlashInferStep {}

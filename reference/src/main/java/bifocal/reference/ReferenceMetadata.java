package bifocal.reference;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.batch.CommonAttentionMetadata;

/**
 * The batch itself: the reference needs nothing else.
 *
 * @param batch as the host described it
 */
public record ReferenceMetadata(CommonAttentionMetadata batch) implements AttentionMetadata {}

package bifocal.conformance.fake;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.BackendName;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.graph.GraphKey;

/**
 * What a fake builder makes of a batch.
 *
 * @param backend the fake that made it
 * @param batch the batch as it was given
 * @param graphKey capture key: the fake's name, and the batch padded as it is
 */
public record FakeMetadata(BackendName backend, CommonAttentionMetadata batch, GraphKey graphKey)
    implements AttentionMetadata {}

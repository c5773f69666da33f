package bifocal.reference.shadow;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerGroup;
import bifocal.core.workspace.WorkspaceView;
import io.vavr.control.Option;

/**
 * One step's batch as both backends want it.
 *
 * @param primary what the primary built
 * @param shadow what the shadow built, absent when it could not
 * @param shadowNanos what the shadow's building took
 * @param workspace of the step
 */
public record ShadowMetadata<P extends AttentionMetadata, S extends AttentionMetadata>(
    long step,
    LayerGroup group,
    CommonAttentionMetadata batch,
    P primary,
    Option<S> shadow,
    long shadowNanos,
    WorkspaceView workspace)
    implements AttentionMetadata {}

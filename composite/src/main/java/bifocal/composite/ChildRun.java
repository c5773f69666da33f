package bifocal.composite;

import bifocal.core.backend.AttentionMetadata;
import bifocal.core.graph.GraphKey;
import bifocal.core.layer.LayerGroup;
import bifocal.core.workspace.WorkspaceView;

/**
 * What one child runs of one step.
 *
 * @param metadata what the child built
 * @param group the layer group as the child sees it
 * @param requests requests the child runs, each run cut out of a request counted
 * @param queryTokens query tokens the child runs
 * @param rows where its rows of q and of the output are
 * @param workspace the child's workspace
 */
public record ChildRun<M extends AttentionMetadata>(
    M metadata,
    LayerGroup group,
    int requests,
    int queryTokens,
    QueryRows rows,
    WorkspaceView workspace) {

  GraphKey graphKey(String route, boolean captureSafe) {
    GraphKey key = metadata.graphKey();
    return new GraphKey(
        route + ":" + key.route(),
        key.requests(),
        key.queryTokens(),
        captureSafe && key.captureSafe());
  }
}

package bifocal.cli.replay;

import bifocal.composite.CompositeBackend;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvCacheView;
import bifocal.core.capsule.StepCapsule;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.route.Route;
import bifocal.core.tensor.TensorView;
import bifocal.reference.shadow.ShadowBackend;
import io.vavr.control.Option;
import java.nio.file.Path;

/**
 * Writes one step of a replay, a file for each layer.
 *
 * @param step its number
 * @param tensors whether queries, keys and values are written, too
 */
record StepCapture(int step, Path folder, boolean tensors) {

  /** Writes a layer, once its step has run. */
  void take(
      AttentionBackend<?> backend,
      LayerGroup group,
      int layer,
      CommonAttentionMetadata batch,
      Option<Route> route,
      TensorView q,
      KvCacheView cache) {
    StepCapsule capsule =
        StepCapsule.of(group, batch, origin(backend, step, group.layers().get(layer), route));
    Path file = folder.resolve("step-" + step + "-" + group.name() + "-" + layer + ".safetensors");
    if (tensors) {
      capsule.write(file, q, cache, LayerParameters.NONE);
    } else {
      capsule.write(file);
    }
  }

  static StepCapsule.Origin origin(
      AttentionBackend<?> backend, long step, String layer, Option<Route> route) {
    AttentionBackend<?> own =
        backend instanceof ShadowBackend<?, ?> shadowed ? shadowed.primary() : backend;
    boolean split = true;
    boolean lowering = false;
    if (own instanceof CompositeBackend<?, ?> composite) {
      split = composite.policy().splits();
      lowering = composite.policy().lowers();
    }
    return new StepCapsule.Origin(
        own.name().value(), step, layer, route.map(Route::label), split, lowering);
  }
}

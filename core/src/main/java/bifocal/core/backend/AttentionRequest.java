package bifocal.core.backend;

import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec;
import io.vavr.control.Option;

/**
 * Everything a backend is validated against.
 *
 * @param layer what the layer asks
 * @param device where it shall run
 * @param blockSize tokens per cache block, absent unless the user pinned it
 * @param deployment what the engine asks
 */
public record AttentionRequest(
    AttentionLayerSpec layer,
    DeviceProfile device,
    Option<Integer> blockSize,
    Deployment deployment) {

  /** A layer on a device, nothing pinned. */
  public static AttentionRequest of(AttentionLayerSpec layer, DeviceProfile device) {
    return new AttentionRequest(layer, device, Option.none(), Deployment.PLAIN);
  }

  /** The same request for another layer. */
  public AttentionRequest withLayer(AttentionLayerSpec other) {
    return new AttentionRequest(other, device, blockSize, deployment);
  }

  /** The same request with another pinned block size. */
  public AttentionRequest withBlockSize(int tokens) {
    return new AttentionRequest(layer, device, Option.some(tokens), deployment);
  }

  /** Whether two-way image visibility is asked for, by this layer or another of the model. */
  public boolean mmPrefix() {
    return deployment.modelSeesImages() || layer.mask().seesImages();
  }
}

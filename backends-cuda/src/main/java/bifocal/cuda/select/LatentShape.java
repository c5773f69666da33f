package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.DecodeThreshold;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.select.LatentPrefillOrder;
import io.vavr.collection.HashMap;
import io.vavr.collection.Map;
import io.vavr.control.Option;

/** What rules of latent backends read of a request. */
final class LatentShape {
  private static final int BLACKWELL = 10;
  private static final Map<Integer, Integer> ON_BLACKWELL =
      HashMap.of(8, 128, 16, 128, 32, 128, 64, 256, 128, 1024);
  private static final int ON_BLACKWELL_OTHERWISE = 1024;
  private static final Map<Integer, Integer> ELSEWHERE =
      HashMap.of(16, 128, 32, 128, 64, 256, 128, 256);
  private static final int ELSEWHERE_OTHERWISE = 256;

  private LatentShape() {}

  /** The latent attention underneath, absent for other layers. */
  static Option<AttentionLayerSpec.Mla> of(AttentionRequest request) {
    return LatentPrefillOrder.latent(request.layer());
  }

  /** Keys that an indexer chooses; absent when the model does not say. */
  static Option<Integer> indexTopk(AttentionRequest request) {
    return request.layer() instanceof AttentionLayerSpec.SparseMla sparse
        ? sparse.indexTopk()
        : Option.none();
  }

  /** The longest decode of a sparse kernel for 10.x, by query heads of one rank. */
  static DecodeThreshold blackwellThreshold(AttentionRequest request) {
    return uniform(request, ON_BLACKWELL, ON_BLACKWELL_OTHERWISE);
  }

  /** The longest decode of a sparse kernel for other devices. */
  static DecodeThreshold threshold(AttentionRequest request) {
    return uniform(request, ELSEWHERE, ELSEWHERE_OTHERWISE);
  }

  /** Hierarchical sparse attention decodes single tokens. */
  private static DecodeThreshold uniform(
      AttentionRequest request, Map<Integer, Integer> byHeads, int otherwise) {
    return DecodeThreshold.uniform(
        request.deployment().kernels().hierarchicalSparse()
            ? 1
            : byHeads.get(request.layer().numHeads()).getOrElse(otherwise));
  }

  /** The longest decode of a sparse kernel that is built for both. */
  static DecodeThreshold thresholdOfDevice(AttentionRequest request) {
    return Sm.major(request.device()) == BLACKWELL
        ? blackwellThreshold(request)
        : threshold(request);
  }
}

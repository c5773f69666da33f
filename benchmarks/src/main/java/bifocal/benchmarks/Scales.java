package bifocal.benchmarks;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.select.SelectionRequest;

/** Requests that differ in a number which no backend asks about. */
final class Scales {
  private Scales() {}

  static SelectionRequest scaled(SelectionRequest request, int number) {
    AttentionRequest attention = request.attention();
    return attention.layer() instanceof AttentionLayerSpec.Dense dense
        ? request.with(
            new AttentionRequest(
                dense.withScale(1.0 / number),
                attention.device(),
                attention.blockSize(),
                attention.deployment()))
        : request;
  }
}

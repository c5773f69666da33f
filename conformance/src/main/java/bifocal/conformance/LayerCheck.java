package bifocal.conformance;

import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.reference.Tolerance;

/**
 * Holds a backend to the reference for one layer: what a backend's own build runs besides the
 * contract, where its kernels are compiled for chosen shapes. Blocks are shuffled, outputs
 * poisoned, rows of no request left between those of requests, and scratch memory filled with
 * rubbish between steps.
 */
public final class LayerCheck {
  private final BackendContract contract;
  private final Setup setup;
  private final Tolerance tolerance;

  private LayerCheck(BackendContract contract, Setup setup, Tolerance tolerance) {
    this.contract = contract;
    this.setup = setup;
    this.tolerance = tolerance;
  }

  /** A layer whose numbers and blocks a seed decides. */
  public static LayerCheck of(BackendContract contract, Dense layer, long seed) {
    return new LayerCheck(contract, Setup.of(layer, seed), Tolerance.of(layer.dtype()));
  }

  /** The same over blocks of so many tokens. */
  public LayerCheck withBlockSize(int tokens) {
    return new LayerCheck(contract, setup.withBlockSize(tokens), tolerance);
  }

  /** The same over a cache with scales. */
  public LayerCheck withScales(KvScales scales) {
    return new LayerCheck(contract, setup.withScales(scales), tolerance);
  }

  /** The same with room for other sequences than eight of 160 tokens. */
  public LayerCheck withRoom(int sequences, int tokensEach) {
    return new LayerCheck(contract, setup.withRoom(sequences, tokensEach), tolerance);
  }

  /** The same within other bounds than those of the layer's type. */
  public LayerCheck within(Tolerance bounds) {
    return new LayerCheck(contract, setup, bounds);
  }

  /** Runs batches one after the other over one cache and compares each with the reference. */
  public void agrees(BatchPlan... batches) {
    try (Rig<?> rig = Rig.open(contract, setup)) {
      for (BatchPlan batch : batches) {
        rig.run(batch).requireRight(tolerance);
      }
    }
  }

  /**
   * The same for a host that asks for outputs alone: a kernel may serve it that returns no
   * log-sum-exp.
   */
  public void agreesWithoutLogSumExp(BatchPlan... batches) {
    try (Rig<?> rig = Rig.open(contract, setup)) {
      for (BatchPlan batch : batches) {
        rig.runWithoutLse(batch).requireRight(tolerance);
      }
    }
  }

  @Override
  public String toString() {
    return setup.toString();
  }
}

package bifocal.cuda.triton;

import bifocal.cuda.pack.Specialisation;

/** The two children that {@code TRITON_ATTN}'s kernels make. */
public enum TritonVariant {
  /** Reads any mask, by an interval of keys for each query token. */
  GENERAL(Specialisation.Variant.GENERAL),
  /** Reads windows, of the layer or of runs. */
  CAUSAL(Specialisation.Variant.CAUSAL);

  private final Specialisation.Variant kernels;

  TritonVariant(Specialisation.Variant kernels) {
    this.kernels = kernels;
  }

  Specialisation.Variant kernels() {
    return kernels;
  }
}

package bifocal.cuda.flashinfer;

/** Which kernels decode where several can. */
public enum DecodeKernels {
  /**
   * The kernels for one query a request, where the pack has them. They return no log-sum-exp: a
   * forward that asks for it is run by {@link #TENSOR_CORES}.
   */
  XQA,
  /** The prefill kernels of small tiles, which share loaded keys among the heads of a group. */
  TENSOR_CORES,
  /** The decode kernels. */
  CUDA_CORES
}

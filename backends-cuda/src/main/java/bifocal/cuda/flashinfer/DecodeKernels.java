package bifocal.cuda.flashinfer;

/** Which kernels decode where several can. */
public enum DecodeKernels {
  /** The prefill kernels of small tiles, which share loaded keys among the heads of a group. */
  TENSOR_CORES,
  /** The decode kernels. */
  CUDA_CORES
}

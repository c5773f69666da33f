package bifocal.core.select;

import bifocal.core.backend.BackendName;

/**
 * The names the reference knows, in its order. A name may be known without being registered: the
 * platform's module is missing, or nobody has provided the backend yet.
 */
public enum KnownBackend {
  FLASH_ATTN,
  FLASH_ATTN_DIFFKV,
  TRITON_ATTN,
  TRITON_ATTN_DIFFKV,
  ROCM_ATTN,
  ROCM_AITER_MLA,
  ROCM_AITER_TRITON_MLA,
  ROCM_AITER_FA,
  ROCM_AITER_MLA_SPARSE,
  XPU_MLA_SPARSE,
  /** A tag of vision encoders; no backend of that name exists. */
  TORCH_SDPA,
  FLASHINFER,
  TRITON_FLASHINFER,
  TRITON_FLASH_ATTN,
  FLASHINFER_MLA,
  TOKENSPEED_MLA,
  FLASHINFER_MLA_SPARSE,
  FLASHINFER_MLA_SPARSE_SM120,
  FLASHINFER_MLA_SPARSE_SM90,
  TRITON_MLA,
  CUTLASS_MLA,
  FLASHMLA,
  FLASHMLA_SPARSE,
  FLASHMLA_SPARSE_DSV4,
  FLASHINFER_MLA_SPARSE_DSV4,
  ROCM_FLASHMLA_SPARSE_DSV4,
  FLASHMLA_MEGA_ATTN_DSV41,
  FLASHMLA_SPARSE_DSV41,
  FLASHINFER_MLA_SPARSE_DSV41,
  B12X,
  FLASH_ATTN_MLA,
  FLASH_ATTN_MLA_SPARSE,
  MINIMAX_M3_SPARSE,
  CUTLASS_MSA,
  TRITON_MSA,
  /** A name without a backend. */
  NO_ATTENTION,
  FLEX_ATTENTION,
  HPC_ATTN,
  ROCM_AITER_UNIFIED_ATTN,
  CPU_ATTN,
  CPU_MLA,
  AMX_MLA,
  TURBOQUANT,
  /** The place of a third party's backend. */
  CUSTOM;

  private final BackendName backend = new BackendName(name());

  /** The name as the registry knows it. */
  public BackendName backend() {
    return backend;
  }
}

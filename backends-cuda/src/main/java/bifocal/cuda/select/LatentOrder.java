package bifocal.cuda.select;

import bifocal.core.backend.BackendName;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.PriorityList;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * The lists of latent decode. One list serves dense and sparse layers, because each kind of backend
 * refuses the other kind of layer.
 */
final class LatentOrder {
  private static final int BLACKWELL = 10;
  private static final int WORKSTATION_BLACKWELL = 12;
  private static final int FEW_HEADS = 16;
  private static final int ROPE_FREE_HEAD = 512;

  private static final Seq<BackendName> DENSE_ON_BLACKWELL =
      CudaPolicy.names(
          KnownBackend.FLASHINFER_MLA,
          KnownBackend.TOKENSPEED_MLA,
          KnownBackend.CUTLASS_MLA,
          KnownBackend.FLASH_ATTN_MLA,
          KnownBackend.FLASHMLA,
          KnownBackend.TRITON_MLA);
  private static final Seq<BackendName> FLASHINFER_FIRST =
      CudaPolicy.names(KnownBackend.FLASHINFER_MLA_SPARSE, KnownBackend.FLASHMLA_SPARSE);
  private static final Seq<BackendName> ON_WORKSTATIONS =
      CudaPolicy.names(KnownBackend.TRITON_MLA, KnownBackend.FLASHINFER_MLA_SPARSE_SM120);
  private static final Seq<BackendName> DENSE_ELSEWHERE =
      CudaPolicy.names(
          KnownBackend.FLASH_ATTN_MLA,
          KnownBackend.FLASHMLA,
          KnownBackend.FLASHINFER_MLA,
          KnownBackend.TRITON_MLA);
  private static final Seq<BackendName> SPARSE_ELSEWHERE =
      CudaPolicy.names(
          KnownBackend.FLASH_ATTN_MLA_SPARSE,
          KnownBackend.FLASHMLA_SPARSE,
          KnownBackend.FLASHINFER_MLA_SPARSE_SM90);
  private static final Seq<BackendName> ROPE_FREE_ELSEWHERE =
      CudaPolicy.names(
          KnownBackend.FLASHINFER_MLA_SPARSE_SM90,
          KnownBackend.FLASH_ATTN_MLA_SPARSE,
          KnownBackend.FLASHMLA_SPARSE);

  private LatentOrder() {}

  /**
   * Candidates of a layer.
   *
   * @param major major compute capability
   * @param heads query heads of one rank, absent when unknown
   */
  static Seq<BackendName> of(int major, Option<Integer> heads, KvCacheDtype cache, int headSize) {
    return switch (major) {
      case BLACKWELL -> DENSE_ON_BLACKWELL.appendAll(sparsePair(heads, cache));
      case WORKSTATION_BLACKWELL -> ON_WORKSTATIONS;
      default ->
          DENSE_ELSEWHERE.appendAll(
              headSize == ROPE_FREE_HEAD ? ROPE_FREE_ELSEWHERE : SPARSE_ELSEWHERE);
    };
  }

  private static Seq<BackendName> sparsePair(Option<Integer> heads, KvCacheDtype cache) {
    boolean flashInfer =
        LatentCacheTypes.quantized(cache) || heads.exists(count -> count <= FEW_HEADS);
    return flashInfer ? FLASHINFER_FIRST : FLASHINFER_FIRST.reverse();
  }

  /** The lists as documentation prints them. */
  static Seq<PriorityList> printed() {
    return Vector.of(
        list(
            "SM 10.x",
            "fp8 KV cache, or at most 16 query heads",
            DENSE_ON_BLACKWELL.appendAll(FLASHINFER_FIRST)),
        list(
            "SM 10.x",
            "16-bit KV cache and more than 16 query heads",
            DENSE_ON_BLACKWELL.appendAll(FLASHINFER_FIRST.reverse())),
        list("SM 12.x", "", ON_WORKSTATIONS),
        list("SM 8.x-9.x", "", DENSE_ELSEWHERE.appendAll(SPARSE_ELSEWHERE)),
        list("SM 8.x-9.x", "head size 512", DENSE_ELSEWHERE.appendAll(ROPE_FREE_ELSEWHERE)),
        new PriorityList("deepseek_v4", "SM 12.x", "", Vector.of(DeepSeekV4.FLASHINFER_NAME)),
        new PriorityList(
            "deepseek_v4", "other CUDA devices", "", Vector.of(DeepSeekV4.FLASHMLA_NAME)));
  }

  private static PriorityList list(String devices, String condition, Seq<BackendName> order) {
    return new PriorityList("mla", devices, condition, order);
  }
}

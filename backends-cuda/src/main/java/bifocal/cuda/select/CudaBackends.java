package bifocal.cuda.select;

import static bifocal.composite.guice.AttentionBinder.capabilityMajor;

import bifocal.composite.guice.CompositeBinder;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.device.ComputeCapability;
import bifocal.core.select.DeclaredBackend;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.PlatformPolicy;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import java.util.function.Function;

/** All backends of the platform, and its composites. */
public final class CudaBackends {
  private static final String FLASH_ATTENTION =
      "FLASH_ATTENTION_LIBRARY: FlashAttention's kernels behind a C interface";
  private static final String FLASHINFER =
      "FLASHINFER_LIBRARY: FlashInfer's kernels, called without Python";
  private static final String TRITON_PACK = "TRITON_PACK: a pack of these kernels";
  private static final String ALIAS =
      "CONFIGURATION_NAME: chooses the decode kernel of MINIMAX_M3_SPARSE, runs nothing itself";
  private static final String FLASHMLA =
      "FLASHMLA_LIBRARY: FlashMLA's kernels behind a C interface";

  private CudaBackends() {}

  /** Every backend that is not a composite and is declared without kernels. */
  public static Seq<AttentionBackend<?>> all() {
    return Vector.<AttentionBackend<?>>of(
            DeclaredBackend.needing(FLASH_ATTENTION, FlashAttentionDiffKv.DECLARATION),
            DeclaredBackend.needing(TRITON_PACK, TritonAttentionDiffKv.DECLARATION),
            DeclaredBackend.needing(TRITON_PACK, TurboQuant.DECLARATION),
            DeclaredBackend.needing("B12X_PACKAGE: the b12x kernels for 12.x", B12x.DECLARATION),
            DeclaredBackend.needing(
                "HPC_LIBRARY: the HPC kernels for 9.0", HpcAttention.DECLARATION),
            DeclaredBackend.needing(
                "SPARSE_KERNELS: an indexer, and attention over chosen blocks", MiniMaxM3.SPARSE),
            DeclaredBackend.needing(ALIAS, MiniMaxM3.CUTLASS_MSA),
            DeclaredBackend.needing(ALIAS, MiniMaxM3.TRITON_MSA),
            DeclaredBackend.needing(FLASHMLA, DeepSeekV41.MEGA_ATTN),
            DeclaredBackend.needing(FLASHMLA, DeepSeekV41.FLASHMLA_SPARSE))
        .appendAll(latent());
  }

  /** The latent backends, dense and sparse. */
  private static Seq<AttentionBackend<?>> latent() {
    return Vector.of(
        DeclaredBackend.needing(
            "CUTLASS_LIBRARY: CUTLASS's latent decode behind a C interface", DenseLatent.CUTLASS),
        DeclaredBackend.needing(FLASHINFER, DenseLatent.FLASHINFER),
        DeclaredBackend.needing(
            "TOKENSPEED_PACKAGE: the tokenspeed-mla kernels, called without Python",
            DenseLatent.TOKENSPEED),
        DeclaredBackend.needing(FLASHMLA, DenseLatent.FLASHMLA),
        DeclaredBackend.needing(FLASH_ATTENTION, DenseLatent.FLASH_ATTENTION),
        DeclaredBackend.needing(TRITON_PACK, DenseLatent.TRITON),
        DeclaredBackend.needing(FLASHINFER, SparseLatent.FLASHINFER),
        DeclaredBackend.needing(FLASHINFER, SparseLatent.FLASHINFER_SM120),
        DeclaredBackend.needing(FLASHINFER, SparseLatent.FLASHINFER_SM90),
        DeclaredBackend.needing(FLASHMLA, SparseLatent.FLASHMLA),
        DeclaredBackend.needing(FLASH_ATTENTION, SparseLatent.FLASH_ATTENTION),
        DeclaredBackend.needing(FLASHMLA, DeepSeekV4.FLASHMLA),
        DeclaredBackend.needing(FLASHINFER, DeepSeekV4.FLASHINFER),
        DeclaredBackend.needing(FLASHINFER, DeepSeekV41.FLASHINFER));
  }

  /** How the platform chooses. */
  public static PlatformPolicy policy() {
    return new CudaPolicy(CudaLatentPolicy::plan);
  }

  /** How the platform chooses on a host with these optional kernel packages. */
  public static PlatformPolicy policy(Function<ComputeCapability, Set<String>> packages) {
    return new CudaPolicy(CudaLatentPolicy::plan, packages);
  }

  /** Says the composites. */
  public static void bindComposites(CompositeBinder composites) {
    composites
        .bind(KnownBackend.TRITON_FLASHINFER.backend())
        .of(TritonAttention.NAME, FlashInfer.NAME)
        .routedBy(MMPrefixAttentionRouting.class)
        .onlyOn(capabilityMajor(10))
        .headSizes(256, 512)
        .kernelBlockSizes(64)
        .asTheReference();
    composites
        .bind(KnownBackend.TRITON_FLASH_ATTN.backend())
        .of(TritonAttention.NAME, FlashAttention.NAME)
        .routedBy(MMPrefixAttentionRouting.class)
        .onlyOn(capabilityMajor(9))
        .headSizes(256, 512)
        .asTheReference()
        .provided((flashAttention, asked) -> FlashAttention.causalRouteNeedsVersion4(asked));
  }
}

package bifocal.cuda.select;

import static bifocal.composite.guice.AttentionBinder.capabilityMajor;

import bifocal.composite.guice.CompositeBinder;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.select.DeclaredBackend;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.PlatformPolicy;
import bifocal.core.select.SelectionPlan;
import bifocal.routing.MMPrefixAttentionRouting;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** All backends of the platform, and its composites. */
public final class CudaBackends {
  private CudaBackends() {}

  /** Every backend that is not a composite. */
  public static Seq<AttentionBackend<?>> all() {
    return Vector.of(
        DeclaredBackend.needing(
            "FLASH_ATTENTION_LIBRARY: FlashAttention's kernels behind a C interface",
            FlashAttention.DECLARATION),
        DeclaredBackend.needing(
            "FLASHINFER_LIBRARY: FlashInfer's kernels, called without Python",
            FlashInfer.DECLARATION),
        DeclaredBackend.needing(
            "TRITON_PACK: a pack of Triton kernels for this device", TritonAttention.DECLARATION));
  }

  /** How the platform chooses. */
  public static PlatformPolicy policy() {
    return new CudaPolicy((request, asked) -> SelectionPlan.byPriority(asked, Vector.empty()));
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

package bifocal.rocm.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KernelSettings;
import bifocal.core.select.AttentionConfig;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.LatentPrefill;
import bifocal.core.select.LatentPrefillBackend;
import bifocal.core.select.LatentPrefillOrder;
import bifocal.core.select.LatentPrefillRegistry;
import bifocal.core.select.LayerKind;
import bifocal.core.select.PriorityList;
import bifocal.core.select.SelectionPlan;
import bifocal.core.select.SelectionRequest;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;

/** How latent and sparse layers choose on ROCm. */
final class RocmLatentPolicy {
  private static final int PREFILL_CDNA = 3;
  private static final BackendName TRITON_MLA = KnownBackend.TRITON_MLA.backend();
  private static final BackendName MINIMAX_M3 = KnownBackend.MINIMAX_M3_SPARSE.backend();

  private static final Seq<BackendName> WITH_AITER =
      Vector.of(LatentRocmRows.AITER_MLA, TRITON_MLA, LatentRocmRows.AITER_TRITON_MLA);
  private static final Seq<BackendName> WITHOUT_AITER = Vector.of(TRITON_MLA);
  private static final Seq<BackendName> SPARSE = Vector.of(LatentRocmRows.AITER_MLA_SPARSE);
  private static final Seq<BackendName> DEEPSEEK_V4 = Vector.of(LatentRocmRows.DEEPSEEK_V4);

  /** Sparse backends without a dense path for prefills. */
  private static final Set<BackendName> WITHOUT_DENSE_PATH =
      HashSet.of(LatentRocmRows.AITER_MLA_SPARSE);

  private RocmLatentPolicy() {}

  /** Candidates of decode. */
  static SelectionPlan plan(SelectionRequest request, AttentionRequest asked) {
    if (request.model().deepSeekV4()) {
      return wired(request, asked, DEEPSEEK_V4, "DeepSeek V4 has one backend on this platform");
    }
    if (request.model().miniMaxM3()) {
      return wired(
          request,
          asked.withLayer(
              asked.layer().cachedAs(asked.layer().kvCacheDtype().resolve(asked.layer().dtype()))),
          Vector.of(MINIMAX_M3),
          "block-sparse layers are wired to their own backend");
    }
    if (asked.layer().choosesKeys()) {
      return SelectionPlan.byPriority(asked, SPARSE);
    }
    KernelSettings.Aiter aiter = asked.deployment().kernels().aiter();
    boolean on = aiter.on() && aiter.latent() && AiterLibrary.on(asked.device());
    return SelectionPlan.byPriority(asked, on ? WITH_AITER : WITHOUT_AITER);
  }

  private static SelectionPlan wired(
      SelectionRequest request, AttentionRequest asked, Seq<BackendName> own, String because) {
    SelectionPlan plan = SelectionPlan.byModel(asked, own, because);
    Option<BackendName> other =
        request.config().backendOf(LayerKind.of(asked.layer())).filter(n -> !own.contains(n));
    return other
        .map(name -> plan.whateverIsNamed().noting(name + " is not looked at by these layers"))
        .getOrElse(plan);
  }

  /** Who runs prefills. */
  static Validation<Seq<InvalidReason>, LatentPrefill> prefill(
      BackendName decode,
      AttentionRequest asked,
      AttentionConfig config,
      LatentPrefillRegistry.Snapshot registered) {
    if (DEEPSEEK_V4.contains(decode)) {
      return Validation.valid(LatentPrefill.NONE);
    }
    return WITHOUT_DENSE_PATH.contains(decode)
        ? Validation.valid(LatentPrefill.none(LatentPrefill.NO_DENSE_PATH))
        : new LatentPrefillOrder(
                Vector.of(aiterPrefill(config.rocmUseAiter()), LatentPrefillBackend.FLASH_ATTN),
                Vector.empty())
            .choose(asked, config, registered);
  }

  private static LatentPrefillBackend aiterPrefill(boolean switchedOn) {
    return LatentPrefillBackend.of(
        "ROCM_AITER_FA",
        "AITER FlashAttention",
        "N/A",
        device -> AmdArchitecture.of(device).cdna() >= PREFILL_CDNA,
        Vector.empty(),
        device -> switchedOn && AiterLibrary.on(device));
  }

  /** Rows of the table of prefill that this platform adds. */
  static Seq<Seq<String>> prefillRows() {
    return Vector.of(aiterPrefill(true).row());
  }

  /** The lists as documentation prints them. */
  static Seq<PriorityList> printed() {
    return Vector.of(
        new PriorityList("mla", "ROCm", "AITER on", WITH_AITER),
        new PriorityList("mla", "ROCm", "without AITER", WITHOUT_AITER),
        new PriorityList("mla", "ROCm", "sparse", SPARSE),
        new PriorityList("deepseek_v4", "ROCm", "", DEEPSEEK_V4));
  }
}

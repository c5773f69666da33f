package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.InvalidReason;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.DeviceProfile;
import bifocal.core.select.AttentionConfig;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.LatentPrefill;
import bifocal.core.select.LatentPrefillBackend;
import bifocal.core.select.LatentPrefillBackend.Dimensions;
import bifocal.core.select.LatentPrefillOrder;
import bifocal.core.select.LatentPrefillRegistry;
import bifocal.core.select.SelectionPlan;
import bifocal.core.select.SelectionRequest;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.function.Predicate;

/** How latent layers choose on CUDA: who decodes, and who runs the prefills beside it. */
final class CudaLatentPolicy {
  private static final int BLACKWELL = 10;
  private static final int WORKSTATION_BLACKWELL = 12;
  private static final Dimensions DEEPSEEK = new Dimensions(128, 64, 128);
  private static final Dimensions WIDE = new Dimensions(192, 64, 256);
  private static final Predicate<DeviceProfile> ON_BLACKWELL =
      device -> Sm.major(device) == BLACKWELL;

  private static final LatentPrefillBackend TRTLLM_RAGGED =
      LatentPrefillBackend.of(
          "TRTLLM_RAGGED",
          "TensorRT-LLM ragged attention",
          "10.x",
          ON_BLACKWELL,
          Vector.of(DEEPSEEK, WIDE),
          KernelPackages.FLASHINFER::on);
  private static final LatentPrefillBackend FLASHINFER =
      LatentPrefillBackend.of(
          "FLASHINFER",
          "FlashInfer CUTLASS backend",
          "10.x",
          ON_BLACKWELL,
          Vector.of(DEEPSEEK),
          KernelPackages.FLASHINFER::on);
  private static final LatentPrefillBackend TOKENSPEED =
      LatentPrefillBackend.of(
              "TOKENSPEED_MLA",
              "",
              "10.x",
              ON_BLACKWELL,
              Vector.of(DEEPSEEK),
              KernelPackages.TOKENSPEED_MLA::on)
          .sayingWhenMissing(
              "tokenspeed_mla package is not installed. Install it with: `uv pip install"
                  + " tokenspeed-mla`");

  private static final Seq<LatentPrefillBackend> FLASH_FIRST =
      Vector.of(LatentPrefillBackend.FLASH_ATTN, TRTLLM_RAGGED, FLASHINFER, TOKENSPEED);
  private static final Seq<LatentPrefillBackend> RAGGED_FIRST =
      Vector.of(TRTLLM_RAGGED, LatentPrefillBackend.FLASH_ATTN, FLASHINFER, TOKENSPEED);

  /** Backends of models that run their own prefills. */
  private static final Set<BackendName> OF_MODELS =
      HashSet.of(
          DeepSeekV4.FLASHINFER_NAME,
          DeepSeekV4.FLASHMLA_NAME,
          DeepSeekV41.FLASHINFER_NAME,
          DeepSeekV41.SPARSE,
          DeepSeekV41.MEGA);

  private static final Set<BackendName> WITHOUT_DENSE_PATH =
      HashSet.of(KnownBackend.FLASHINFER_MLA_SPARSE_SM120.backend());

  private CudaLatentPolicy() {}

  /** Candidates of decode. */
  static SelectionPlan plan(SelectionRequest request, AttentionRequest asked) {
    if (request.model().deepSeekV4()) {
      return DeepSeekWiring.V4.plan(request, asked);
    }
    if (request.model().deepSeekV41()) {
      return DeepSeekWiring.V41.plan(request, asked);
    }
    KvCacheDtype cache = asked.layer().kvCacheDtype();
    SelectionPlan plan =
        SelectionPlan.byPriority(
            asked,
            LatentOrder.of(
                Sm.major(asked.device()),
                Option.some(asked.layer().numHeads()),
                cache,
                asked.layer().headSize()));
    if (cache == KvCacheDtype.NVFP4 || cache == KvCacheDtype.NVFP4_4OVER6) {
      return plan.noting(
          "nvfp4 KV cache is not supported with MLA (Multi-head Latent Attention) backends.");
    }
    return Sm.major(asked.device()) == WORKSTATION_BLACKWELL && asked.layer().choosesKeys()
        ? PackedScaleFormat.remark(request.model()).map(plan::noting).getOrElse(plan)
        : plan;
  }

  /** Who runs prefills. */
  static Validation<Seq<InvalidReason>, LatentPrefill> prefill(
      BackendName decode,
      AttentionRequest asked,
      AttentionConfig config,
      LatentPrefillRegistry.Snapshot registered) {
    if (OF_MODELS.contains(decode)) {
      return Validation.valid(LatentPrefill.NONE);
    }
    return WITHOUT_DENSE_PATH.contains(decode)
        ? Validation.valid(LatentPrefill.none(LatentPrefill.NO_DENSE_PATH))
        : order(asked).choose(asked, config, registered);
  }

  private static LatentPrefillOrder order(AttentionRequest asked) {
    if (!ON_BLACKWELL.test(asked.device())) {
      return new LatentPrefillOrder(Vector.of(LatentPrefillBackend.FLASH_ATTN), FLASH_FIRST);
    }
    boolean wide =
        LatentShape.of(asked)
            .exists(
                mla ->
                    new Dimensions(mla.qkNopeHeadDim(), mla.qkRopeHeadDim(), mla.vHeadDim())
                        .equals(WIDE));
    return new LatentPrefillOrder(wide ? RAGGED_FIRST : FLASH_FIRST, Vector.empty());
  }

  /** Rows of the reference's table of prefill. */
  static Seq<Seq<String>> prefillRows() {
    return FLASH_FIRST.map(LatentPrefillBackend::row);
  }
}

package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.DeviceProfile;
import bifocal.core.latent.QueryQuantization;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.control.Option;

/** What becomes of the type that a latent cache is asked to have. */
final class LatentCacheTypes {
  private static final int BLACKWELL = 10;
  private static final Set<KvCacheDtype> PACKABLE =
      HashSet.of(
          KvCacheDtype.AUTO, KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3, KvCacheDtype.FP8_DS_MLA);

  private LatentCacheTypes() {}

  /** Whether a cache is quantised in the eyes of the priority list; TurboQuant is not. */
  static boolean quantized(KvCacheDtype type) {
    String label = type.label();
    return label.startsWith("fp8") || label.startsWith("nvfp4") || label.endsWith("per_token_head");
  }

  /** What FlashInfer's latent kernels ask of every other cache beside theirs. */
  static Seq<String> headFirst(AttentionRequest request) {
    return Option.when(
            Sm.major(request.device()) == BLACKWELL,
            "its kernels ask for the HND layout of every cache in the process")
        .toVector();
  }

  /** Who quantises queries, where a cache is quantised. */
  static Seq<String> queries(AttentionRequest request, QueryQuantization queries) {
    return Option.when(quantized(request.layer().kvCacheDtype()), queries::remark).toVector();
  }

  /** What becomes of a quantised cache on FlashInfer's sparse kernels. */
  static Seq<String> standardFp8(AttentionRequest request) {
    return headFirst(request)
        .appendAll(
            Option.when(
                quantized(request.layer().kvCacheDtype())
                    && request.layer().kvCacheDtype() != KvCacheDtype.FP8_DS_MLA,
                "its fp8 cache has one scale; FLASHMLA_SPARSE keeps fp8_ds_mla records"));
  }

  /** Whether DeepSeek V4 stores a cache of this type in packed records. */
  static boolean packable(KvCacheDtype type) {
    return PACKABLE.contains(type);
  }

  /** Whether DeepSeek V4's cache has packed records with FlashInfer, too. */
  static boolean packedByFlashInfer(DeviceProfile device) {
    return Sm.major(device) > BLACKWELL;
  }
}

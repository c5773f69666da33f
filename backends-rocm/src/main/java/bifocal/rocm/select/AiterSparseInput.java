package bifocal.rocm.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.latent.ChosenKeys;
import bifocal.core.latent.QueryQuantization;
import bifocal.core.latent.RaggedKeys;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.control.Option;

/**
 * What {@code ROCM_AITER_MLA_SPARSE} is handed beside queries.
 *
 * @param keys slots of the keys of each token, in pages of one token
 */
public record AiterSparseInput(RaggedKeys keys) {
  /** Queries come in the model's type. */
  public static final QueryQuantization QUERIES = QueryQuantization.BY_BACKEND;

  private static final Set<KvCacheDtype> QUANTIZED =
      HashSet.of(KvCacheDtype.FP8, KvCacheDtype.FP8_E4M3);

  /** What is worth knowing of a layer's calls. */
  static Seq<String> remarks(AttentionRequest request) {
    return Option.when(QUANTIZED.contains(request.layer().kvCacheDtype()), QUERIES::remark)
        .toVector();
  }

  /** The input for keys that an indexer chose. */
  public static AiterSparseInput of(ChosenKeys chosen) {
    return new AiterSparseInput(RaggedKeys.of(chosen));
  }
}

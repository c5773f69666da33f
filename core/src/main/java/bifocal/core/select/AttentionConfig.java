package bifocal.core.select;

import bifocal.core.backend.BackendName;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.control.Option;
import java.util.Locale;

/**
 * What a user says about attention. Absent means that policies decide.
 *
 * @param backend the backend of all layers
 * @param minimaxM3MsaDecodeBackend who computes the sparse decode of MiniMax M3
 * @param backendPerKind backends of some kinds of layers, which win over {@code backend}
 * @param flashAttnVersion 2, 3 or 4
 * @param flashAttnMaxNumSplitsForCudaGraph most splits of one request inside a captured graph
 * @param tqMaxKvSplitsForCudaGraph the same for TurboQuant
 * @param useTrtllmAttention whether FlashInfer must or must not run its TensorRT-LLM kernels
 * @param disableFlashinferQQuantization whether FlashInfer leaves queries in the model's type
 * @param mlaPrefillBackend backend of latent prefill
 * @param usePrefillQueryQuantization whether queries of latent prefill are quantised
 * @param useFp4IndexerCache retired form of an {@code indexerKvDtype} of mxfp4
 * @param indexerKvDtype type of the indexer's side cache
 * @param indexerSparseLogits whether the indexer computes only the logits it needs
 * @param hisparseConfig settings of hierarchical sparse attention, a JSON object
 * @param useNonCausal whether decoder layers attend both ways
 * @param sparseMlaForceMqa whether sparse latent prefill runs as multi-query attention
 * @param flexAttnBlockM tile of queries of FLEX_ATTENTION, a power of two from 16
 * @param flexAttnBlockN tile of keys of FLEX_ATTENTION, a power of two from 16
 * @param flexAttnQBlockSize queries per block of its mask, a power of two, a multiple of the tile
 * @param flexAttnKvBlockSize keys per block of its mask, a power of two, a multiple of the tile
 * @param prefillBackend backend of prefills; with {@code decodeBackend} it makes a pair
 * @param decodeBackend backend of decodes
 * @param tritonFlashAttnAllowsFa3 whether TRITON_FLASH_ATTN may have FlashAttention 3 as its child
 * @param rocmUseAiter the general switch of AMD's kernels
 * @param rocmUseAiterMha the switch of their flash attention kernel
 * @param rocmUseAiterUnifiedAttention the switch of their unified kernel
 * @param rocmUseAiterMla the switch of their latent kernels
 */
public record AttentionConfig(
    Option<BackendName> backend,
    MsaDecode minimaxM3MsaDecodeBackend,
    Map<LayerKind, BackendName> backendPerKind,
    Option<Integer> flashAttnVersion,
    int flashAttnMaxNumSplitsForCudaGraph,
    int tqMaxKvSplitsForCudaGraph,
    Option<Boolean> useTrtllmAttention,
    boolean disableFlashinferQQuantization,
    Option<String> mlaPrefillBackend,
    boolean usePrefillQueryQuantization,
    Option<Boolean> useFp4IndexerCache,
    IndexerKvDtype indexerKvDtype,
    boolean indexerSparseLogits,
    Option<String> hisparseConfig,
    boolean useNonCausal,
    boolean sparseMlaForceMqa,
    Option<Integer> flexAttnBlockM,
    Option<Integer> flexAttnBlockN,
    Option<Integer> flexAttnQBlockSize,
    Option<Integer> flexAttnKvBlockSize,
    Option<BackendName> prefillBackend,
    Option<BackendName> decodeBackend,
    boolean tritonFlashAttnAllowsFa3,
    boolean rocmUseAiter,
    boolean rocmUseAiterMha,
    Option<Boolean> rocmUseAiterUnifiedAttention,
    boolean rocmUseAiterMla) {

  /** Nothing said. */
  public static final AttentionConfig DEFAULT = builder().build();

  /** Nothing said so far. */
  public static Builder builder() {
    return new Builder();
  }

  /** The backend a layer is given by name: its kind's, else everyone's. */
  public Option<BackendName> backendOf(LayerKind kind) {
    return backendPerKind.get(kind).orElse(backend);
  }

  /** Whether a backend is named, of all layers, of some, or of a role. */
  public boolean namesBackends() {
    return backend.isDefined()
        || backendPerKind.nonEmpty()
        || prefillBackend.isDefined()
        || decodeBackend.isDefined();
  }

  /** The backend of prefills, if one is named. */
  public Option<BackendName> prefillRole() {
    return prefillBackend.orElse(backend);
  }

  /** The backend of decodes, if one is named. */
  public Option<BackendName> decodeRole() {
    return decodeBackend.orElse(backend);
  }

  /** Collects what is said; {@link #build} checks what excludes each other. */
  public static final class Builder {
    private static final int FEWEST_ROWS = 16;

    private Option<BackendName> attentionBackend = Option.none();
    private Option<BackendName> backend = Option.none();
    private boolean backendSaid;
    private boolean configured;
    private MsaDecode msaDecode = MsaDecode.TRITON;
    private Map<LayerKind, BackendName> perKind = LinkedHashMap.empty();
    private Option<Integer> flashAttnVersion = Option.none();
    private int flashAttnSplits = 32;
    private int turboQuantSplits = 32;
    private Option<Boolean> trtllm = Option.none();
    private boolean plainQueries;
    private Option<String> mlaPrefill = Option.none();
    private boolean prefillQueryQuantization;
    private Option<Boolean> fp4Indexer = Option.none();
    private IndexerKvDtype indexer = IndexerKvDtype.AUTO;
    private boolean indexerSparseLogits;
    private Option<String> hisparse = Option.none();
    private boolean nonCausal;
    private boolean forceMqa;
    private Option<Integer> flexBlockM = Option.none();
    private Option<Integer> flexBlockN = Option.none();
    private Option<Integer> flexQueryBlock = Option.none();
    private Option<Integer> flexKvBlock = Option.none();
    private Option<BackendName> prefill = Option.none();
    private Option<BackendName> decode = Option.none();
    private boolean compositeTakesFa3;
    private boolean aiter;
    private boolean aiterMha = true;
    private Option<Boolean> aiterUnified = Option.none();
    private boolean aiterMla = true;

    private Builder() {}

    /** The backend, as the option beside the configuration names it; {@code auto} means none. */
    public Builder attentionBackend(String name) {
      attentionBackend = named(name);
      backendSaid = true;
      return this;
    }

    /** The backend, by a name of the reference. */
    public Builder backend(KnownBackend name) {
      return backend(name.backend().value());
    }

    /** The backend, by any name in any letter case; {@code auto} means none. */
    public Builder backend(String name) {
      backend = named(name);
      configured = true;
      return this;
    }

    /** Who computes the sparse decode of MiniMax M3. */
    public Builder minimaxM3MsaDecodeBackend(MsaDecode value) {
      msaDecode = value;
      return this;
    }

    /** The backend of one kind of layers. */
    public Builder backendPerKind(LayerKind kind, String name) {
      perKind = named(name).map(b -> perKind.put(kind, b)).getOrElse(perKind.remove(kind));
      return this;
    }

    /** The version of FlashAttention: 2, 3 or 4. */
    public Builder flashAttnVersion(int value) {
      if (value < 2 || value > 4) {
        throw invalid("flash_attn_version", value, "2, 3 or 4");
      }
      flashAttnVersion = Option.some(value);
      return this;
    }

    public Builder flashAttnMaxNumSplitsForCudaGraph(int value) {
      flashAttnSplits = atLeastOne("flash_attn_max_num_splits_for_cuda_graph", value);
      return this;
    }

    public Builder tqMaxKvSplitsForCudaGraph(int value) {
      turboQuantSplits = atLeastOne("tq_max_kv_splits_for_cuda_graph", value);
      return this;
    }

    public Builder useTrtllmAttention(boolean value) {
      trtllm = Option.some(value);
      return this;
    }

    public Builder disableFlashinferQQuantization(boolean value) {
      plainQueries = value;
      return this;
    }

    /** The backend of latent prefill, in any letter case; {@code auto} means none. */
    public Builder mlaPrefillBackend(String name) {
      mlaPrefill = named(name).map(BackendName::value);
      return this;
    }

    public Builder usePrefillQueryQuantization(boolean value) {
      prefillQueryQuantization = value;
      return this;
    }

    public Builder useFp4IndexerCache(boolean value) {
      fp4Indexer = Option.some(value);
      return this;
    }

    public Builder indexerKvDtype(IndexerKvDtype value) {
      indexer = value;
      return this;
    }

    public Builder indexerSparseLogits(boolean value) {
      indexerSparseLogits = value;
      return this;
    }

    public Builder hisparseConfig(String json) {
      hisparse = Option.some(json);
      return this;
    }

    public Builder useNonCausal(boolean value) {
      nonCausal = value;
      return this;
    }

    public Builder sparseMlaForceMqa(boolean value) {
      forceMqa = value;
      return this;
    }

    public Builder flexAttnBlockM(int value) {
      flexBlockM = Option.some(tile("flex_attn_block_m", value));
      return this;
    }

    public Builder flexAttnBlockN(int value) {
      flexBlockN = Option.some(tile("flex_attn_block_n", value));
      return this;
    }

    public Builder flexAttnQBlockSize(int value) {
      flexQueryBlock = Option.some(powerOfTwo("flex_attn_q_block_size", value, 1));
      return this;
    }

    public Builder flexAttnKvBlockSize(int value) {
      flexKvBlock = Option.some(powerOfTwo("flex_attn_kv_block_size", value, 1));
      return this;
    }

    /** The backend of prefills; {@code auto} means none. */
    public Builder prefillBackend(String name) {
      prefill = named(name);
      return this;
    }

    /** The backend of decodes; {@code auto} means none. */
    public Builder decodeBackend(String name) {
      decode = named(name);
      return this;
    }

    public Builder tritonFlashAttnAllowsFa3(boolean value) {
      compositeTakesFa3 = value;
      return this;
    }

    public Builder rocmUseAiter(boolean value) {
      aiter = value;
      return this;
    }

    public Builder rocmUseAiterMha(boolean value) {
      aiterMha = value;
      return this;
    }

    public Builder rocmUseAiterUnifiedAttention(boolean value) {
      aiterUnified = Option.some(value);
      return this;
    }

    public Builder rocmUseAiterMla(boolean value) {
      aiterMla = value;
      return this;
    }

    /**
     * The configuration.
     *
     * @throws BifocalException {@code INVALID_OPTION} when two of its parts exclude each other
     */
    public AttentionConfig build() {
      requireOneWayToNameTheBackend();
      Option<BackendName> named = attentionBackend.orElse(backend);
      requireOneBackendOrTwoRoles(named);
      requireMultiple("flex_attn_q_block_size", flexQueryBlock, "flex_attn_block_m", flexBlockM);
      requireMultiple("flex_attn_kv_block_size", flexKvBlock, "flex_attn_block_n", flexBlockN);
      Option<MsaDecode> alias = named.flatMap(Builder::msaAlias);
      return new AttentionConfig(
          alias.isDefined() ? Option.none() : named,
          alias.getOrElse(msaDecode),
          perKind,
          flashAttnVersion,
          flashAttnSplits,
          turboQuantSplits,
          trtllm,
          plainQueries,
          mlaPrefill,
          prefillQueryQuantization,
          fp4Indexer,
          indexerType(),
          indexerSparseLogits,
          hisparse,
          nonCausal,
          forceMqa,
          flexBlockM,
          flexBlockN,
          flexQueryBlock,
          flexKvBlock,
          prefill,
          decode,
          compositeTakesFa3,
          aiter,
          aiterMha,
          aiterUnified,
          aiterMla);
    }

    private void requireOneWayToNameTheBackend() {
      if (backendSaid && configured) {
        throw BifocalException.of(
            ErrorCode.INVALID_OPTION,
            "attention_backend and attention_config.backend are mutually exclusive");
      }
    }

    private void requireOneBackendOrTwoRoles(Option<BackendName> named) {
      if (named.isDefined() && (prefill.isDefined() || decode.isDefined())) {
        throw BifocalException.of(
            ErrorCode.INVALID_OPTION,
            "`backend` (--attention-backend) is mutually exclusive with"
                + " `prefill_backend`/`decode_backend`");
      }
    }

    /** Two names choose only the sparse decode kernel; dense layers stay automatic. */
    private static Option<MsaDecode> msaAlias(BackendName name) {
      if (name.equals(KnownBackend.CUTLASS_MSA.backend())) {
        return Option.some(MsaDecode.CUTLASS);
      }
      return Option.when(name.equals(KnownBackend.TRITON_MSA.backend()), MsaDecode.TRITON);
    }

    private IndexerKvDtype indexerType() {
      if (!fp4Indexer.getOrElse(false)) {
        return indexer;
      }
      if (indexer != IndexerKvDtype.AUTO && indexer != IndexerKvDtype.MXFP4) {
        throw BifocalException.of(
                ErrorCode.INVALID_OPTION,
                "use_fp4_indexer_cache and indexer_kv_dtype",
                indexer.name().toLowerCase(Locale.ROOT),
                "mxfp4, or one of the two settings")
            .withRemedy("use_fp4_indexer_cache is retired; say indexer_kv_dtype=mxfp4");
      }
      return IndexerKvDtype.MXFP4;
    }

    private static Option<BackendName> named(String name) {
      return name.strip().equalsIgnoreCase("auto")
          ? Option.none()
          : Option.some(BackendName.of(name));
    }

    private static int atLeastOne(String key, int value) {
      if (value < 1) {
        throw invalid(key, value, "at least 1");
      }
      return value;
    }

    private static int tile(String key, int value) {
      return powerOfTwo(key, value, FEWEST_ROWS);
    }

    private static int powerOfTwo(String key, int value, int least) {
      if (value < least || Integer.bitCount(value) != 1) {
        throw invalid(key, value, "a power of two of at least " + least);
      }
      return value;
    }

    private static void requireMultiple(
        String key, Option<Integer> value, String tileKey, Option<Integer> tile) {
      if (value.isDefined() && value.get() % tile.getOrElse(FEWEST_ROWS) != 0) {
        throw invalid(
            key, value.get(), "a multiple of " + tileKey + ", " + tile.getOrElse(FEWEST_ROWS));
      }
    }

    private static BifocalException invalid(String key, Object seen, String wanted) {
      return BifocalException.of(ErrorCode.INVALID_OPTION, "attention_config." + key, seen, wanted);
    }
  }
}

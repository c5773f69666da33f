package bifocal.cli.select;

import bifocal.cli.command.CliFailure;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.Deployment;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.core.latent.DecodeSharing;
import bifocal.core.latent.PrefillSharing;
import bifocal.core.latent.SharedSequence;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.model.ModelCatalog;
import bifocal.core.model.ModelShape;
import bifocal.core.select.ModelTraits;
import bifocal.core.tensor.DType;
import io.vavr.collection.HashMap;
import io.vavr.collection.Map;
import io.vavr.control.Option;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** The options that say for which layer, and what the engine asks. */
final class LayerOptions {
  private static final int HEADS = 32;
  private static final int KV_HEADS = 8;
  private static final int HEAD_SIZE = 128;
  private static final int LATENT = 512;
  private static final int NOPE = 128;
  private static final int VALUE = 128;
  private static final int ROTARY = 64;
  private static final int TOP_K = 2048;
  private static final int SPARSE_BLOCK = 128;
  private static final int SPARSE_BLOCKS = 16;

  private static final Map<String, DType> DTYPES =
      HashMap.of(
          "fp16", DType.FP16,
          "float16", DType.FP16,
          "half", DType.FP16,
          "bf16", DType.BF16,
          "bfloat16", DType.BF16,
          "fp32", DType.FP32,
          "float32", DType.FP32,
          "float", DType.FP32);

  @picocli.CommandLine.Option(
      names = "--model",
      paramLabel = "ID",
      description = "A model of the catalogue, which sets what its layers need.")
  private @Nullable String model;

  @picocli.CommandLine.Option(
      names = "--layer-kind",
      paramLabel = "sliding|full",
      description = "Which of the model's layers; without it, the first kind.")
  private @Nullable String layerKind;

  @picocli.CommandLine.Option(
      names = "--dtype",
      paramLabel = "TYPE",
      description = "Type of queries: bf16 (default), fp16 or fp32.")
  private String dtype = "bf16";

  @picocli.CommandLine.Option(
      names = "--kv-cache-dtype",
      paramLabel = "TYPE",
      description = "Type of the KV cache; auto (default) follows the model.")
  private String kvCacheDtype = "auto";

  @picocli.CommandLine.Option(
      names = "--block-size",
      paramLabel = "N",
      description = "Pin the tokens per block of the KV cache.")
  private @Nullable Integer blockSize;

  @picocli.CommandLine.Option(names = "--head-size", paramLabel = "N", description = "Key head.")
  private @Nullable Integer headSize;

  @picocli.CommandLine.Option(
      names = "--head-size-v",
      paramLabel = "N",
      description = "Value head, where it differs.")
  private @Nullable Integer headSizeV;

  @picocli.CommandLine.Option(
      names = "--num-heads",
      paramLabel = "N",
      description = "Query heads on one rank.")
  private @Nullable Integer numHeads;

  @picocli.CommandLine.Option(
      names = "--num-kv-heads",
      paramLabel = "N",
      description = "KV heads on one rank.")
  private @Nullable Integer numKvHeads;

  @picocli.CommandLine.Option(names = "--use-mla", description = "Latent attention.")
  private boolean useMla;

  @picocli.CommandLine.Option(
      names = "--qk-nope-head-dim",
      paramLabel = "N",
      description = "Query and key elements without rotary encoding.")
  private @Nullable Integer qkNope;

  @picocli.CommandLine.Option(
      names = "--qk-rope-head-dim",
      paramLabel = "N",
      description = "Query and key elements with rotary encoding.")
  private @Nullable Integer qkRope;

  @picocli.CommandLine.Option(
      names = "--v-head-dim",
      paramLabel = "N",
      description = "Value elements before absorption.")
  private @Nullable Integer vHead;

  @picocli.CommandLine.Option(
      names = "--kv-lora-rank",
      paramLabel = "N",
      description = "Elements of the cached latent vector.")
  private @Nullable Integer kvLoraRank;

  @picocli.CommandLine.Option(
      names = "--use-sparse",
      description = "Attention over the keys that an indexer chooses.")
  private boolean useSparse;

  @picocli.CommandLine.Option(
      names = "--index-topk",
      paramLabel = "N",
      description = "Keys that the indexer chooses per query; 0 when the model does not say.")
  private @Nullable Integer indexTopk;

  @picocli.CommandLine.Option(names = "--has-sink", description = "A sink logit per head.")
  private boolean hasSink;

  @picocli.CommandLine.Option(
      names = "--mm-prefix",
      description = "Tokens of an image see each other both ways.")
  private boolean mmPrefix;

  @picocli.CommandLine.Option(
      names = "--non-causal",
      description = "Decoder layers that attend both ways.")
  private boolean nonCausal;

  @picocli.CommandLine.Option(
      names = "--attn-type",
      paramLabel = "TYPE",
      description = "decoder (default), encoder, encoder_only or encoder_decoder.")
  private @Nullable String attentionType;

  @picocli.CommandLine.Option(
      names = "--sliding-window",
      paramLabel = "N",
      description = "A query sees itself and the N-1 keys before it.")
  private @Nullable Integer slidingWindow;

  @picocli.CommandLine.Option(names = "--softcap", paramLabel = "X", description = "Cap on logits.")
  private @Nullable Double softcap;

  @picocli.CommandLine.Option(
      names = {"--dcp", "--decode-context-parallel-size"},
      paramLabel = "N",
      description = "Ranks that share one sequence in decode.")
  private int dcp = 1;

  @picocli.CommandLine.Option(
      names = "--pcp",
      paramLabel = "N",
      description = "Ranks that share one sequence in prefill.")
  private int pcp = 1;

  @picocli.CommandLine.Option(
      names = "--cp-kv-cache-interleave-size",
      paramLabel = "N",
      description = "Tokens that go to a rank at a time where ranks share a sequence (default 1).")
  private int interleave = 1;

  @picocli.CommandLine.Option(
      names = "--dcp-comm-backend",
      paramLabel = "ag_rs|a2a",
      description = "How results of ranks that share a sequence meet (default ag_rs).")
  private @Nullable String exchange;

  @picocli.CommandLine.Option(
      names = "--rswa",
      description = "Windows that always keep the prompt's beginning.")
  private boolean rswa;

  @picocli.CommandLine.Option(
      names = "--adaptive-verification",
      description = "Query lengths on the device differ from the host's copy.")
  private boolean adaptiveVerification;

  @picocli.CommandLine.Option(
      names = "--batch-invariant",
      description = "Results may not depend on the batch.")
  private boolean batchInvariant;

  @picocli.CommandLine.Option(
      names = "--per-head-quant-scales",
      description = "Scales of a quantised cache per head.")
  private boolean perHeadQuantScales;

  @picocli.CommandLine.Option(
      names = "--kv-connector",
      description = "The cache is transferred to another process.")
  private boolean kvConnector;

  /** What policies read of the model, when one is named. */
  ModelTraits traits() {
    return shape().map(ModelTraits::of).getOrElse(ModelTraits.UNKNOWN);
  }

  /** The layer, whatever the device. */
  AttentionLayerSpec spec() {
    requireThatEveryOptionCounts();
    return shape().map(this::layerOf).getOrElse(this::layer);
  }

  /** The layer on a device, with what the engine asks. */
  AttentionRequest request(DeviceProfile device) {
    Option<ModelShape> shape = shape();
    return new AttentionRequest(
        spec(),
        device,
        Given.of(blockSize).map(size -> positive("--block-size", size)),
        deployment(mmPrefix || shape.exists(ModelShape::seesImages)));
  }

  private Deployment deployment(boolean seesImages) {
    return new Deployment(
        seesImages,
        positive("--dcp", dcp),
        positive("--pcp", pcp),
        kvConnector,
        batchInvariant,
        adaptiveVerification,
        rswa,
        perHeadQuantScales,
        false);
  }

  /** How ranks that share a sequence decode together. */
  DecodeSharing sharing() {
    return new DecodeSharing(
        new SharedSequence(
            positive("--dcp", dcp), positive("--cp-kv-cache-interleave-size", interleave)),
        Given.of(exchange)
            .map(
                name ->
                    Choice.of(
                        "--dcp-comm-backend",
                        name,
                        DecodeSharing.Exchange.values(),
                        choice -> choice.name().toLowerCase(Locale.ROOT)))
            .getOrElse(DecodeSharing.Exchange.DEFAULT));
  }

  /** How many ranks share a sequence in prefill. */
  PrefillSharing prefillSharing() {
    return new PrefillSharing(positive("--pcp", pcp));
  }

  private Option<ModelShape> shape() {
    ModelCatalog catalog = ModelCatalog.shipped();
    return Given.of(model)
        .map(
            id ->
                catalog
                    .find(id)
                    .getOrElseThrow(
                        () ->
                            CliFailure.of(
                                ErrorCode.INVALID_OPTION,
                                "--model: unknown model '"
                                    + id
                                    + "'; "
                                    + NearestName.adviceElseAll(
                                        id, catalog.models().map(ModelShape::id)))));
  }

  private AttentionLayerSpec layerOf(ModelShape shape) {
    if (shape.latent().isDefined()) {
      return latentOf(shape, shape.latent().get());
    }
    if (shape.kinds().isEmpty()) {
      throw CliFailure.of(
          ErrorCode.INVALID_OPTION,
          "--model: the shapes of '" + model + "' are not known; describe its layers by options");
    }
    ModelShape.Kind kind =
        Given.of(layerKind)
            .map(
                name ->
                    Choice.of(
                        "--layer-kind",
                        name,
                        shape.kinds().toJavaArray(ModelShape.Kind[]::new),
                        ModelShape.Kind::name))
            .getOrElse(() -> shape.kinds().head());
    AttentionLayerSpec.Dense dense =
        new AttentionLayerSpec.Dense(
            orElse("--num-heads", numHeads, kind.numHeads()),
            orElse("--num-kv-heads", numKvHeads, kind.numKvHeads()),
            orElse("--head-size", headSize, kind.headSize()),
            orElse("--head-size-v", headSizeV, headSize == null ? kind.headSizeV() : headSize),
            type(),
            kvCacheType(),
            AttentionType.DECODER,
            adjusted(kind.mask()),
            kind.scale(),
            cap().orElse(kind.softcap()),
            false,
            hasSink || kind.sinks());
    return shape
        .sparse()
        .filter(sparse -> sparse.blockTokens().isDefined())
        .<AttentionLayerSpec>map(
            sparse ->
                new AttentionLayerSpec.BlockSparse(
                    dense, sparse.blockTokens().get(), Math.max(1, sparse.topk())))
        .getOrElse(dense);
  }

  private AttentionLayerSpec latentOf(ModelShape shape, ModelShape.Latent latent) {
    int heads = shape.kinds().headOption().map(ModelShape.Kind::numHeads).getOrElse(HEADS);
    AttentionLayerSpec.Mla mla =
        new AttentionLayerSpec.Mla(
            orElse("--num-heads", numHeads, heads),
            latent.kvLoraRank(),
            latent.qkNopeHeadDim(),
            latent.qkRopeHeadDim(),
            latent.vHeadDim(),
            type(),
            kvCacheType(),
            adjusted(AttentionMask.CAUSAL),
            Math.pow(latent.qkNopeHeadDim() + latent.qkRopeHeadDim(), -0.5),
            hasSink || shape.kinds().exists(ModelShape.Kind::sinks),
            latent.vHeadDim() == latent.cachedHeadSize());
    return shape
        .sparse()
        .<AttentionLayerSpec>map(
            sparse ->
                new AttentionLayerSpec.SparseMla(
                    mla, Option.when(sparse.topk() > 0, sparse.topk())))
        .getOrElse(mla);
  }

  private AttentionLayerSpec layer() {
    if (useMla) {
      AttentionLayerSpec.Mla mla = latent();
      return useSparse ? new AttentionLayerSpec.SparseMla(mla, topk()) : mla;
    }
    AttentionLayerSpec.Dense dense = dense();
    return useSparse
        ? new AttentionLayerSpec.BlockSparse(dense, SPARSE_BLOCK, SPARSE_BLOCKS)
        : dense;
  }

  private AttentionLayerSpec.Dense dense() {
    int heads =
        orElse("--num-heads", numHeads, numKvHeads == null ? HEADS : Math.max(HEADS, numKvHeads));
    int kvHeads = orElse("--num-kv-heads", numKvHeads, heads % KV_HEADS == 0 ? KV_HEADS : heads);
    int size = orElse("--head-size", headSize, HEAD_SIZE);
    AttentionType type =
        Given.of(attentionType)
            .map(
                name ->
                    Choice.of("--attn-type", name, AttentionType.values(), AttentionType::label))
            .getOrElse(AttentionType.DECODER);
    AttentionMask mask =
        switch (type) {
          case DECODER -> adjusted(AttentionMask.CAUSAL);
          case ENCODER, ENCODER_ONLY, ENCODER_DECODER -> windowed(AttentionMask.BIDIRECTIONAL);
        };
    return new AttentionLayerSpec.Dense(
        heads,
        kvHeads,
        size,
        orElse("--head-size-v", headSizeV, size),
        type(),
        kvCacheType(),
        type,
        mask,
        Math.pow(size, -0.5),
        cap(),
        false,
        hasSink);
  }

  private AttentionLayerSpec.Mla latent() {
    int rotary = qkRope == null ? ROTARY : qkRope;
    int nope = qkNope == null ? NOPE : qkNope;
    int rank =
        orElse(
            "--kv-lora-rank",
            kvLoraRank,
            headSize == null ? LATENT : Math.max(1, positive("--head-size", headSize) - rotary));
    if (headSize != null && kvLoraRank != null && headSize != rank + rotary) {
      throw CliFailure.of(
          ErrorCode.INVALID_OPTION,
          "--head-size: "
              + headSize
              + ", but a latent of "
              + rank
              + " and "
              + rotary
              + " rotary elements make "
              + (rank + rotary));
    }
    return new AttentionLayerSpec.Mla(
        orElse("--num-heads", numHeads, HEADS * 4),
        rank,
        nope,
        rotary,
        orElse("--v-head-dim", vHead, VALUE),
        type(),
        kvCacheType(),
        adjusted(AttentionMask.CAUSAL),
        Math.pow(Math.max(1, nope + rotary), -0.5),
        hasSink);
  }

  private Option<Integer> topk() {
    int keys = indexTopk == null ? TOP_K : indexTopk;
    return Option.when(keys != 0, keys);
  }

  /** An option that the layer would not look at is an error, not a wish that is passed over. */
  private void requireThatEveryOptionCounts() {
    boolean latents = useMla && model == null;
    requireFor(latents, "latent layers; say --use-mla", "--kv-lora-rank", kvLoraRank);
    requireFor(latents, "latent layers; say --use-mla", "--qk-nope-head-dim", qkNope);
    requireFor(latents, "latent layers; say --use-mla", "--qk-rope-head-dim", qkRope);
    requireFor(latents, "latent layers; say --use-mla", "--v-head-dim", vHead);
    requireFor(
        latents && useSparse,
        "sparse latent layers; say --use-mla and --use-sparse",
        "--index-topk",
        indexTopk);
    requireFor(model != null, "the layers of a model; say --model", "--layer-kind", layerKind);
    requireFor(
        !useMla && model == null, "layers that no model describes", "--attn-type", attentionType);
    boolean ofLatentModel = shape().exists(known -> known.latent().isDefined());
    boolean dense = !useMla && !ofLatentModel;
    requireFor(dense, "layers without latents", "--head-size-v", headSizeV);
    requireFor(dense, "layers without latents", "--num-kv-heads", numKvHeads);
    requireFor(dense, "layers without latents", "--softcap", softcap);
    requireFor(!ofLatentModel, "layers whose sizes no model says", "--head-size", headSize);
    requireFor(!ofLatentModel, "models without latents", "--layer-kind", layerKind);
    requireFor(model == null, "layers that no model describes", "--use-mla", useMla ? "" : null);
    requireFor(
        model == null, "layers that no model describes", "--use-sparse", useSparse ? "" : null);
  }

  private static void requireFor(
      boolean counts, String whom, String option, @Nullable Object given) {
    if (!counts && given != null) {
      throw CliFailure.of(ErrorCode.INVALID_OPTION, option + " is for " + whom);
    }
  }

  private AttentionMask adjusted(AttentionMask mask) {
    AttentionMask windowed = windowed(mask);
    if (nonCausal) {
      return new AttentionMask(false, windowed.window(), ImageMask.NONE, windowed.chunk());
    }
    return mmPrefix && !windowed.seesImages() ? windowed.withImages(ImageMask.OVERRIDE) : windowed;
  }

  private AttentionMask windowed(AttentionMask mask) {
    return slidingWindow == null ? mask : mask.withWindow(slidingWindow);
  }

  private Option<Double> cap() {
    return softcap == null ? Option.none() : Option.some(softcap);
  }

  private DType type() {
    return DTYPES
        .get(dtype.toLowerCase(Locale.ROOT))
        .getOrElseThrow(
            () ->
                CliFailure.of(
                    ErrorCode.INVALID_OPTION,
                    "--dtype: unknown value '"
                        + dtype
                        + "'; "
                        + NearestName.adviceElseAll(dtype, DTYPES.keySet().toVector().sorted())));
  }

  private KvCacheDtype kvCacheType() {
    return Choice.of("--kv-cache-dtype", kvCacheDtype, KvCacheDtype.values(), KvCacheDtype::label);
  }

  private static int orElse(String option, @Nullable Integer given, int otherwise) {
    return given == null ? otherwise : positive(option, given);
  }

  private static int positive(String option, int value) {
    if (value < 1) {
      throw CliFailure.of(ErrorCode.INVALID_OPTION, option + ": " + value + ", wanted at least 1");
    }
    return value;
  }
}

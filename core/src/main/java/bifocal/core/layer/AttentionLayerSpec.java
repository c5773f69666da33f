package bifocal.core.layer;

import bifocal.core.Incubating;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;

/**
 * What a layer asks of attention. Only {@link Dense} is executed; the other kinds are described,
 * validated and selected.
 */
public sealed interface AttentionLayerSpec {

  /** Query heads on this rank. */
  int numHeads();

  /** Heads of the KV cache on this rank; 1 for a latent cache. */
  int numKvHeads();

  /** Elements of a query and of a cached key per head. */
  int headSize();

  /** Elements of a value and of an output per head. */
  int headSizeV();

  /** Type of queries, and of keys and values before they enter the cache. */
  DType dtype();

  /** Requested type of the KV cache. */
  KvCacheDtype kvCacheDtype();

  /** Which tokens are queries and keys. */
  AttentionType type();

  /** The declared mask. */
  AttentionMask mask();

  /** Cap on logits; absent means none. */
  default Option<Double> softcap() {
    return Option.none();
  }

  /** Whether each head has an ALiBi slope. */
  default boolean alibi() {
    return false;
  }

  /** Whether each head has a sink logit. */
  boolean sinks();

  /** Whether the cache holds one latent vector per token instead of keys and values. */
  default boolean cachesLatents() {
    return switch (this) {
      case Mla mla -> true;
      case SparseMla sparse -> true;
      case Dense dense -> false;
      case BlockSparse sparse -> false;
    };
  }

  /** Whether queries see only keys that an indexer chose. */
  default boolean choosesKeys() {
    return switch (this) {
      case SparseMla sparse -> true;
      case BlockSparse sparse -> true;
      case Dense dense -> false;
      case Mla mla -> false;
    };
  }

  /** The same layer with another KV cache type. */
  default AttentionLayerSpec cachedAs(KvCacheDtype type) {
    return switch (this) {
      case Dense dense -> dense.withKvCacheDtype(type);
      case Mla mla -> mla.withKvCacheDtype(type);
      case SparseMla sparse ->
          new SparseMla(sparse.latent().withKvCacheDtype(type), sparse.indexTopk());
      case BlockSparse sparse ->
          new BlockSparse(
              sparse.dense().withKvCacheDtype(type), sparse.sparseBlockSize(), sparse.topkBlocks());
    };
  }

  /** Query heads per KV head. */
  default int groupSize() {
    return numHeads() / numKvHeads();
  }

  /**
   * Multi-head, multi-query or grouped-query attention.
   *
   * @param scale factor on {@code q·k}, finite
   * @param softcap cap {@code c} of {@code c·tanh(x/c)}, finite and positive; absent means none
   * @param alibi whether each head has a slope times the distance between key and query
   * @param sinks whether each head has a sink logit that joins the softmax
   */
  record Dense(
      int numHeads,
      int numKvHeads,
      int headSize,
      int headSizeV,
      DType dtype,
      KvCacheDtype kvCacheDtype,
      AttentionType type,
      AttentionMask mask,
      double scale,
      Option<Double> softcap,
      boolean alibi,
      boolean sinks)
      implements AttentionLayerSpec {

    public Dense {
      requireHeads(numHeads, numKvHeads, headSize, headSizeV);
      requireScale(scale);
      softcap.forEach(Dense::requireSoftcap);
    }

    /** A decoder layer with equal key and value sizes and the usual scale of {@code D^-0.5}. */
    public static Dense decoder(
        int numHeads, int numKvHeads, int headSize, DType dtype, AttentionMask mask) {
      return new Dense(
          numHeads,
          numKvHeads,
          headSize,
          headSize,
          dtype,
          KvCacheDtype.AUTO,
          AttentionType.DECODER,
          mask,
          Math.pow(headSize, -0.5),
          Option.none(),
          false,
          false);
    }

    /** The same layer with another mask. */
    public Dense withMask(AttentionMask other) {
      return new Dense(
          numHeads,
          numKvHeads,
          headSize,
          headSizeV,
          dtype,
          kvCacheDtype,
          type,
          other,
          scale,
          softcap,
          alibi,
          sinks);
    }

    /** The same layer with another KV cache type. */
    public Dense withKvCacheDtype(KvCacheDtype other) {
      return new Dense(
          numHeads,
          numKvHeads,
          headSize,
          headSizeV,
          dtype,
          other,
          type,
          mask,
          scale,
          softcap,
          alibi,
          sinks);
    }

    /** The same layer with another value head size. */
    public Dense withHeadSizeV(int other) {
      return new Dense(
          numHeads,
          numKvHeads,
          headSize,
          other,
          dtype,
          kvCacheDtype,
          type,
          mask,
          scale,
          softcap,
          alibi,
          sinks);
    }

    /** The same layer with another attention type. */
    public Dense withType(AttentionType other) {
      return new Dense(
          numHeads,
          numKvHeads,
          headSize,
          headSizeV,
          dtype,
          kvCacheDtype,
          other,
          mask,
          scale,
          softcap,
          alibi,
          sinks);
    }

    /** The same layer with another scale. */
    public Dense withScale(double other) {
      return new Dense(
          numHeads,
          numKvHeads,
          headSize,
          headSizeV,
          dtype,
          kvCacheDtype,
          type,
          mask,
          other,
          softcap,
          alibi,
          sinks);
    }

    /** The same layer with a softcap. */
    public Dense withSoftcap(double cap) {
      return new Dense(
          numHeads,
          numKvHeads,
          headSize,
          headSizeV,
          dtype,
          kvCacheDtype,
          type,
          mask,
          scale,
          Option.some(cap),
          alibi,
          sinks);
    }

    /** The same layer with or without ALiBi slopes. */
    public Dense withAlibi(boolean on) {
      return new Dense(
          numHeads,
          numKvHeads,
          headSize,
          headSizeV,
          dtype,
          kvCacheDtype,
          type,
          mask,
          scale,
          softcap,
          on,
          sinks);
    }

    /** The same layer with or without sinks. */
    public Dense withSinks(boolean on) {
      return new Dense(
          numHeads,
          numKvHeads,
          headSize,
          headSizeV,
          dtype,
          kvCacheDtype,
          type,
          mask,
          scale,
          softcap,
          alibi,
          on);
    }

    private static void requireSoftcap(double cap) {
      requireFinite("softcap", cap);
      if (cap < Float.MIN_NORMAL || cap > Float.MAX_VALUE) {
        throw BifocalException.of(
                ErrorCode.INVALID_PARAMETER,
                "softcap",
                cap,
                "a positive number that kernels can hold, from 1.2e-38 to 3.4e38")
            .withRemedy("leave softcap out when there is none");
      }
    }
  }

  /**
   * Multi-head latent attention: one latent vector and one rotary key per token are cached.
   *
   * @param kvLoraRank elements of the latent vector
   * @param qkNopeHeadDim query and key elements per head without rotary encoding, before absorption
   * @param qkRopeHeadDim query and key elements per head with rotary encoding
   * @param vHeadDim value elements per head, before absorption
   * @param keysAreValues whether the whole cached record is key and value at once, rotary part
   *     included; else values are the latent vector alone
   */
  @Incubating
  record Mla(
      int numHeads,
      int kvLoraRank,
      int qkNopeHeadDim,
      int qkRopeHeadDim,
      int vHeadDim,
      DType dtype,
      KvCacheDtype kvCacheDtype,
      AttentionMask mask,
      double scale,
      boolean sinks,
      boolean keysAreValues)
      implements AttentionLayerSpec {

    /** A layer whose values are the latent vector alone. */
    public Mla(
        int numHeads,
        int kvLoraRank,
        int qkNopeHeadDim,
        int qkRopeHeadDim,
        int vHeadDim,
        DType dtype,
        KvCacheDtype kvCacheDtype,
        AttentionMask mask,
        double scale,
        boolean sinks) {
      this(
          numHeads,
          kvLoraRank,
          qkNopeHeadDim,
          qkRopeHeadDim,
          vHeadDim,
          dtype,
          kvCacheDtype,
          mask,
          scale,
          sinks,
          false);
    }

    public Mla {
      requirePositive("latent elements", kvLoraRank);
      requireNotNegative("query elements without rotary encoding", qkNopeHeadDim);
      requireNotNegative("query elements with rotary encoding", qkRopeHeadDim);
      requirePositive("value elements", vHeadDim);
      requireHeads(numHeads, 1, kvLoraRank + qkRopeHeadDim, kvLoraRank);
      requireScale(scale);
    }

    /** The same layer with another KV cache type. */
    public Mla withKvCacheDtype(KvCacheDtype other) {
      return new Mla(
          numHeads,
          kvLoraRank,
          qkNopeHeadDim,
          qkRopeHeadDim,
          vHeadDim,
          dtype,
          other,
          mask,
          scale,
          sinks,
          keysAreValues);
    }

    /** The same layer with another mask. */
    public Mla withMask(AttentionMask other) {
      return new Mla(
          numHeads,
          kvLoraRank,
          qkNopeHeadDim,
          qkRopeHeadDim,
          vHeadDim,
          dtype,
          kvCacheDtype,
          other,
          scale,
          sinks,
          keysAreValues);
    }

    @Override
    public int numKvHeads() {
      return 1;
    }

    @Override
    public int headSize() {
      return kvLoraRank + qkRopeHeadDim;
    }

    @Override
    public int headSizeV() {
      return keysAreValues ? headSize() : kvLoraRank;
    }

    @Override
    public AttentionType type() {
      return AttentionType.DECODER;
    }
  }

  /**
   * Latent attention over the keys an indexer chose.
   *
   * @param latent the latent attention underneath
   * @param indexTopk keys chosen per query, absent when the model does not say
   */
  @Incubating
  record SparseMla(Mla latent, Option<Integer> indexTopk) implements AttentionLayerSpec {

    public SparseMla {
      indexTopk.forEach(keys -> requirePositive("index top-k", keys));
    }

    /** A layer of a model that says how many keys are chosen. */
    public SparseMla(Mla latent, int indexTopk) {
      this(latent, Option.some(indexTopk));
    }

    @Override
    public int numHeads() {
      return latent.numHeads();
    }

    @Override
    public int numKvHeads() {
      return 1;
    }

    @Override
    public int headSize() {
      return latent.headSize();
    }

    @Override
    public int headSizeV() {
      return latent.headSizeV();
    }

    @Override
    public DType dtype() {
      return latent.dtype();
    }

    @Override
    public KvCacheDtype kvCacheDtype() {
      return latent.kvCacheDtype();
    }

    @Override
    public AttentionType type() {
      return AttentionType.DECODER;
    }

    @Override
    public AttentionMask mask() {
      return latent.mask();
    }

    @Override
    public boolean sinks() {
      return latent.sinks();
    }
  }

  /**
   * Grouped-query attention over the KV blocks an indexer chose.
   *
   * @param dense the attention underneath
   * @param sparseBlockSize tokens per scored block
   * @param topkBlocks blocks chosen per query
   */
  @Incubating
  record BlockSparse(Dense dense, int sparseBlockSize, int topkBlocks)
      implements AttentionLayerSpec {

    public BlockSparse {
      requirePositive("sparse block size", sparseBlockSize);
      requirePositive("top-k blocks", topkBlocks);
    }

    @Override
    public int numHeads() {
      return dense.numHeads();
    }

    @Override
    public int numKvHeads() {
      return dense.numKvHeads();
    }

    @Override
    public int headSize() {
      return dense.headSize();
    }

    @Override
    public int headSizeV() {
      return dense.headSizeV();
    }

    @Override
    public DType dtype() {
      return dense.dtype();
    }

    @Override
    public KvCacheDtype kvCacheDtype() {
      return dense.kvCacheDtype();
    }

    @Override
    public AttentionType type() {
      return dense.type();
    }

    @Override
    public AttentionMask mask() {
      return dense.mask();
    }

    @Override
    public Option<Double> softcap() {
      return dense.softcap();
    }

    @Override
    public boolean alibi() {
      return dense.alibi();
    }

    @Override
    public boolean sinks() {
      return dense.sinks();
    }
  }

  private static void requireHeads(int numHeads, int numKvHeads, int headSize, int headSizeV) {
    requirePositive("query heads", numHeads);
    requirePositive("KV heads", numKvHeads);
    requirePositive("head size", headSize);
    requirePositive("value head size", headSizeV);
    if (numHeads % numKvHeads != 0) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "query heads",
          numHeads,
          "a multiple of " + numKvHeads + " KV heads");
    }
  }

  private static void requirePositive(String what, int value) {
    if (value < 1) {
      throw BifocalException.of(ErrorCode.INVALID_PARAMETER, what, value, "at least 1");
    }
  }

  private static void requireNotNegative(String what, int value) {
    if (value < 0) {
      throw BifocalException.of(ErrorCode.INVALID_PARAMETER, what, value, "at least 0");
    }
  }

  private static void requireScale(double scale) {
    requireFinite("attention scale", scale);
    if (Math.abs(scale) > Float.MAX_VALUE) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "attention scale",
          scale,
          "a number that kernels can hold, up to 3.4e38");
    }
  }

  private static void requireFinite(String what, double value) {
    if (!Double.isFinite(value)) {
      throw BifocalException.of(ErrorCode.NOT_FINITE, what, value, "a finite number");
    }
  }
}

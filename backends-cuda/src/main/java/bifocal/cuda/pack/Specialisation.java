package bifocal.cuda.pack;

import bifocal.core.tensor.DType;

/** What a kernel was compiled for. Kernels of a pack are looked up by it. */
public sealed interface Specialisation {
  /** Type of queries, keys, values and outputs. */
  DType dtype();

  /** Elements of a head. */
  int headSize();

  /** The entry of a build profile that has this kernel compiled. */
  String profileEntry();

  /** Which part of a batch an attention kernel is for. */
  enum Phase {
    /** Many query tokens of one sequence. */
    PREFILL("prefill"),
    /** Few query tokens of one sequence, whose keys may be divided among programs. */
    DECODE("decode");

    private final String label;

    Phase(String label) {
      this.label = label;
    }

    /** As a manifest spells it. */
    public String label() {
      return label;
    }
  }

  /** How an attention kernel is written. */
  enum Engine {
    /** For every target. */
    PORTABLE("portable"),
    /** For compute capability 9.0, with its tensor memory accelerator. */
    HOPPER("hopper");

    private final String label;

    Engine(String label) {
      this.label = label;
    }

    /** As a manifest spells it. */
    public String label() {
      return label;
    }
  }

  /** How an attention kernel learns which keys a query sees. */
  enum Variant {
    /** By the windows of a run of queries. */
    CAUSAL("causal"),
    /** By an interval of keys for each query token. */
    GENERAL("general");

    private final String label;

    Variant(String label) {
      this.label = label;
    }

    /** As a manifest spells it. */
    public String label() {
      return label;
    }
  }

  /**
   * Attention over a paged cache.
   *
   * @param group query heads of one KV head
   * @param blockSize slots of a cache block
   * @param wide whether the output is fp32 though queries are narrower
   */
  record Attention(
      Phase phase,
      Engine engine,
      Variant variant,
      DType dtype,
      CacheFormat cache,
      int headSize,
      int group,
      int blockSize,
      boolean softcap,
      boolean alibi,
      boolean wide)
      implements Specialisation {

    /** Attention whose output has the type of the queries. */
    public Attention(
        Phase phase,
        Engine engine,
        Variant variant,
        DType dtype,
        CacheFormat cache,
        int headSize,
        int group,
        int blockSize,
        boolean softcap,
        boolean alibi) {
      this(phase, engine, variant, dtype, cache, headSize, group, blockSize, softcap, alibi, false);
    }

    /** The same attention written in another way. */
    public Attention by(Engine other) {
      return new Attention(
          phase, other, variant, dtype, cache, headSize, group, blockSize, softcap, alibi, wide);
    }

    /** The same attention for another part of a batch. */
    public Attention in(Phase other) {
      return new Attention(
          other, engine, variant, dtype, cache, headSize, group, blockSize, softcap, alibi, wide);
    }

    /** The same attention into fp32. */
    public Attention widened() {
      return new Attention(
          phase, engine, variant, dtype, cache, headSize, group, blockSize, softcap, alibi, true);
    }

    @Override
    public String profileEntry() {
      return Specialisation.entry(phase.label(), dtype, headSize)
          + ", \"engine\": \""
          + engine.label()
          + "\", \"variant\": \""
          + variant.label()
          + "\""
          + Specialisation.cacheFields(cache)
          + ", \"group\": "
          + group
          + ", \"block_size\": "
          + blockSize
          + ", \"softcap\": "
          + softcap
          + ", \"alibi\": "
          + alibi
          + Specialisation.outField(wide)
          + "}";
    }

    @Override
    public String toString() {
      return phase.label()
          + " ("
          + variant.label()
          + ", "
          + engine.label()
          + ") "
          + dtype
          + ", cache "
          + cache
          + ", head size "
          + headSize
          + ", group "
          + group
          + ", blocks of "
          + blockSize
          + (softcap ? ", softcap" : "")
          + (alibi ? ", ALiBi" : "")
          + (wide ? ", into fp32" : "");
    }
  }

  /** Writing keys and values into the cache. */
  record Write(DType dtype, CacheFormat cache, int headSize) implements Specialisation {
    @Override
    public String profileEntry() {
      return Specialisation.entry("write", dtype, headSize)
          + Specialisation.cacheFields(cache)
          + "}";
    }

    @Override
    public String toString() {
      return "write " + dtype + " to cache " + cache + ", head size " + headSize;
    }
  }

  /**
   * Merging what the programs of a divided decode left.
   *
   * @param wide whether the output is fp32 though queries are narrower
   */
  record Merge(DType dtype, int headSize, boolean wide) implements Specialisation {
    /** Merging into the type of the queries. */
    public Merge(DType dtype, int headSize) {
      this(dtype, headSize, false);
    }

    @Override
    public String profileEntry() {
      return Specialisation.entry("merge", dtype, headSize) + Specialisation.outField(wide) + "}";
    }

    @Override
    public String toString() {
      return "merge " + dtype + ", head size " + headSize + (wide ? ", into fp32" : "");
    }
  }

  private static String entry(String use, DType dtype, int headSize) {
    return "{\"use\": \""
        + use
        + "\", \"dtype\": \""
        + dtype.label()
        + "\", \"head_size\": "
        + headSize;
  }

  private static String cacheFields(CacheFormat cache) {
    return ", \"kv\": \""
        + cache.numbers().label()
        + "\", \"token_scales\": "
        + cache.tokenScales();
  }

  private static String outField(boolean wide) {
    return wide ? ", \"out\": \"fp32\"" : "";
  }
}

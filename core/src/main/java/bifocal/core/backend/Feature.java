package bifocal.core.backend;

/** What a backend can do beyond plain causal attention. What is not declared is not supported. */
public enum Feature {
  /** A sink logit per head joins the softmax. */
  SINK,
  /** Decoder layers whose queries see later keys. */
  NON_CAUSAL,
  /** Non-causal runs that a left window bounds and a right window does not; lowering needs it. */
  NON_CAUSAL_LEFT_WINDOW,
  /** Non-causal runs with different left and right windows. */
  RIGHT_WINDOW,
  /** Sliding windows. */
  SLIDING_WINDOW,
  /** Chunked-local attention. */
  CHUNKED_LOCAL,
  /** Soft caps on logits. */
  SOFTCAP,
  /** ALiBi slopes. */
  ALIBI,
  /** ALiBi with the square root of the distance. */
  ALIBI_SQRT,
  /** Value heads of another size than key heads. */
  HEAD_SIZE_V,
  /** Latent attention. */
  MLA,
  /** Attention over chosen keys. */
  SPARSE,
  /** Decode context parallelism. */
  DCP,
  /** Non-causal attention together with decode context parallelism. */
  NON_CAUSAL_DCP,
  /** Prefill context parallelism. */
  PCP,
  /** Sliding windows that always keep the prompt's beginning. */
  RSWA,
  /** Results that do not depend on the batch. */
  BATCH_INVARIANCE,
  /** Scales of a quantised cache per head. */
  PER_HEAD_QUANT_SCALES,
  /** Scales of a quantised cache other than 1. */
  KV_SCALES,
  /** Transfer of the cache to another process. */
  KV_CONNECTOR,
  /** Query lengths on the device that differ from the host's copy. */
  ADAPTIVE_VERIFICATION,
  /** The log-sum-exp of each query and head, base e. */
  LSE,
  /** The log-sum-exp in base 2 only. */
  LSE_BASE_2,
  /**
   * Requests whose query rows and block table rows lie anywhere, without a copy. Without it, query
   * rows lie back to back from any first row on, and request {@code r} has block table row {@code
   * r}. It holds for every variant of a backend or for none.
   */
  INDIRECT_REQUESTS,
  /** The cache is written inside forward, so another backend cannot write it. */
  KV_WRITE_IN_FORWARD
}

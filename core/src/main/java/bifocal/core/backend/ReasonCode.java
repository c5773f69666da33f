package bifocal.core.backend;

import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Set;

/** Stable codes of reasons why a backend cannot serve a layer. */
public enum ReasonCode {
  HEAD_SIZE,
  DTYPE,
  KV_CACHE_DTYPE,
  BLOCK_SIZE,
  MM_PREFIX,
  MLA,
  SINK,
  SPARSE,
  PER_HEAD_QUANT_SCALES,
  DEVICE,
  ATTENTION_TYPE,
  SLIDING_WINDOW,
  RSWA,
  NON_CAUSAL,
  NON_CAUSAL_DCP,
  BATCH_INVARIANCE,
  KV_CONNECTOR,
  PCP,
  DCP,
  ADAPTIVE_VERIFICATION,
  SOFTCAP,
  ALIBI,
  CHUNKED_LOCAL,
  HEAD_SIZE_V,
  KV_SCALES,
  KV_LAYOUT,
  LSE,
  COMBINATION,
  COMPOSITION,
  NOT_ON_THIS_HOST;

  /** Properties that combinations are made of unless a backend says otherwise. */
  static final Set<ReasonCode> COMBINED =
      LinkedHashSet.of(
          HEAD_SIZE, DTYPE, KV_CACHE_DTYPE, BLOCK_SIZE, MLA, SINK, SPARSE, MM_PREFIX, DEVICE);
}

package bifocal.core.error;

/** Stable names of failures. A code never changes its meaning; new codes are added at the end. */
public enum ErrorCode {
  /** A length, position or count is below zero. */
  NEGATIVE,
  /** A sum or product of lengths does not fit its integer type. */
  OVERFLOW,
  /** More queries are scheduled than the sequence has positions. */
  QUERY_EXCEEDS_SEQ,
  /** A query row range is not ordered or leaves the query tensor. */
  QUERY_START_INVALID,
  /** An image range ends before it begins. */
  IMAGE_REVERSED,
  /** Two image ranges of one request share a position. */
  IMAGE_OVERLAP,
  /** A step would compute some but not all keys of an image. */
  IMAGE_CUT,
  /** An image is larger than one step's token budget. */
  IMAGE_EXCEEDS_BUDGET,
  /** The live count is larger than the number of requests. */
  LIVE_EXCEEDS_REQUESTS,
  /** A window, softcap, scale, chunk or slope is outside its domain. */
  INVALID_PARAMETER,
  /** A number is NaN or infinite where a finite one is needed. */
  NOT_FINITE,
  /** A tensor has another data type than its use needs. */
  DTYPE_MISMATCH,
  /** A tensor has another rank, shape or stride than its use needs. */
  SHAPE_MISMATCH,
  /** A tensor's memory is smaller than its shape needs. */
  MEMORY_TOO_SMALL,
  /** A tensor is on another device than its use needs. */
  DEVICE_MISMATCH,
  /** A block table names a block outside the cache. */
  BLOCK_OUT_OF_RANGE,
  /** A slot mapping names a slot outside the cache. */
  SLOT_OUT_OF_RANGE,
  /** A block table is too short for a sequence. */
  BLOCK_TABLE_TOO_SHORT,
  /** The pool has too few free blocks. */
  POOL_EXHAUSTED,
  /** A block is used that no lease covers. */
  BLOCK_NOT_LEASED,
  /** A cache, pool, workspace, step or context is used after it was closed. */
  CLOSED,
  /** A call came from another thread than the one that owns the device. */
  WRONG_THREAD,
  /** The workspace is smaller than the plan. */
  WORKSPACE_TOO_SMALL,
  /** A workspace region was asked for that the plan does not name. */
  WORKSPACE_REGION_UNKNOWN,
  /** More steps are open than the workspace was planned for. */
  TOO_MANY_STEPS,
  /** A captured graph would be replayed for another key. */
  GRAPH_KEY_MISMATCH,
  /** A batch may not be captured. */
  NOT_CAPTURABLE,
  /** Readers and writer of a cache share no layout, data type or block size. */
  KV_INCOMPATIBLE,
  /** Two backends cannot be composed. */
  INVALID_COMPOSITION,
  /** The chosen backend is not valid for the configuration. */
  INVALID_SELECTION,
  /** No backend is valid for the configuration. */
  NO_VALID_BACKEND,
  /** A backend name is not registered. */
  UNKNOWN_BACKEND,
  /** A backend name is registered already. */
  DUPLICATE_BACKEND,
  /** A backend's own limit refuses the layer. */
  UNSUPPORTED,
  /** A file or text is not well formed. */
  MALFORMED_INPUT,
  /** An option, key or value is unknown or not allowed. */
  INVALID_OPTION,
  /** A library, symbol, driver or kernel pack is not on this host. */
  NATIVE_MISSING,
  /** A native call returned an error. */
  NATIVE_FAILED,
  /** The layer is described but no kernel executes it here. */
  MLA_NOT_EXECUTABLE,
  /** Something Bifocal promises did not hold. */
  INTERNAL,
  /** Something is closed or changed while a running step uses it. */
  IN_USE,
  /** A workspace or graph of one stream or queue is used on another. */
  WRONG_STREAM,
  /** A device failed in a way that only a new process gets over. */
  DEVICE_LOST,
  /** A device has not enough free memory. */
  DEVICE_MEMORY_EXHAUSTED,
  /** A native function has another signature than its caller was written for. */
  SIGNATURE_MISMATCH,
  /** A platform's jar was built against another version of what it implements. */
  SPI_MISMATCH
}

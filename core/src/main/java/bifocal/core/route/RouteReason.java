package bifocal.core.route;

/** Why a request goes where it goes. */
public enum RouteReason {
  /** A query must see a later key, which the fast child's mask hides. */
  NEEDS_FUTURE_KEY,
  /** A query must see a key that the fast child's window hides. */
  NEEDS_KEY_BEHIND_WINDOW,
  /** A query lies in an image, and yet both masks are equal. */
  MASK_EQUAL,
  /** No query lies in an image. */
  NO_IMAGE_QUERY,
  /** No query at all. */
  EMPTY,
  /** The image mask is run as causal and non-causal runs by the fast child. */
  LOWERED,
  /** The image mask cannot be cut into runs exactly. */
  NOT_LOWERABLE,
  /** Another request decided for the whole batch. */
  FOLLOWS_BATCH,
  /** The request still works on its prompt, or has more queries than a decode may have. */
  PREFILL,
  /** The request is a decode. */
  DECODE,
  /** A host's predicate decided. */
  PREDICATE,
  /** The policy always decides so. */
  FIXED,
  /** The other child would be right, too, and was measured to be slower. */
  MEASURED
}

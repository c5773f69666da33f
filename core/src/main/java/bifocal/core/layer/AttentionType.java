package bifocal.core.layer;

import java.util.Locale;

/** Which tokens are queries and which are keys. */
public enum AttentionType {
  /** Queries and keys are one sequence with a KV cache. */
  DECODER,
  /** An encoder of an encoder-decoder model. */
  ENCODER,
  /** A model that is an encoder alone; it has no KV cache. */
  ENCODER_ONLY,
  /** Queries of a decoder over keys of an encoder; lengths are independent. */
  ENCODER_DECODER;

  private final String label = name().toLowerCase(Locale.ROOT);

  /** Whether keys and values come from a KV cache. */
  public boolean usesKvCache() {
    return switch (this) {
      case DECODER, ENCODER_DECODER -> true;
      case ENCODER, ENCODER_ONLY -> false;
    };
  }

  /** Name as users write it, for instance {@code encoder_only}. */
  public String label() {
    return label;
  }

  @Override
  public String toString() {
    return label;
  }
}

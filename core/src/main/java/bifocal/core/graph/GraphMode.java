package bifocal.core.graph;

/**
 * Which batches an engine replays from captured graphs, and how: whole, or in pieces between which
 * attention runs uncaptured. A mode is a pair, for batches of decodes and for mixed ones.
 */
public enum GraphMode {
  NONE,
  PIECEWISE,
  FULL,
  /** Whole graphs for decodes, none for mixed batches. */
  FULL_DECODE_ONLY,
  /** Whole graphs for decodes, pieces for mixed batches. */
  FULL_AND_PIECEWISE;

  /** How batches of decodes run. */
  public GraphMode ofDecodes() {
    return switch (this) {
      case NONE, PIECEWISE, FULL -> this;
      case FULL_DECODE_ONLY, FULL_AND_PIECEWISE -> FULL;
    };
  }

  /** How mixed batches run. */
  public GraphMode ofMixed() {
    return switch (this) {
      case NONE, PIECEWISE, FULL -> this;
      case FULL_DECODE_ONLY -> NONE;
      case FULL_AND_PIECEWISE -> PIECEWISE;
    };
  }

  /** Whether decodes have graphs of their own. */
  public boolean isPair() {
    return this == FULL_DECODE_ONLY || this == FULL_AND_PIECEWISE;
  }

  /** Whether some batches run whole graphs. */
  public boolean hasFull() {
    return ofDecodes() == FULL || ofMixed() == FULL;
  }
}

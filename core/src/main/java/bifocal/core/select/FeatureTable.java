package bifocal.core.select;

import java.util.Locale;

/** The feature tables of the reference, in its order. */
public enum FeatureTable {
  /** Multi-head, multi-query and grouped-query attention. */
  STANDARD,
  /** Block-sparse attention of MiniMax M3. */
  MINIMAX_M3,
  /** Latent attention, decode. */
  MLA,
  /** Sparse latent attention of DeepSeek V4. */
  DEEPSEEK_V4;

  /** Name as users write it, for instance {@code minimax_m3}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** Whether the table has a column about attention over chosen keys. */
  public boolean tellsSparse() {
    return switch (this) {
      case STANDARD, MINIMAX_M3 -> false;
      case MLA, DEEPSEEK_V4 -> true;
    };
  }
}

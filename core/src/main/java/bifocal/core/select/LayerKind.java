package bifocal.core.select;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import io.vavr.collection.Vector;
import java.util.Locale;

/** Kinds of layers that a backend can be chosen for one by one. */
public enum LayerKind {
  FULL_ATTENTION,
  MLA_ATTENTION,
  SLIDING_WINDOW,
  SLIDING_WINDOW_MLA,
  MAMBA,
  CHUNKED_LOCAL_ATTENTION,
  SINK_FULL_ATTENTION,
  ENCODER_ONLY_ATTENTION,
  CROSS_ATTENTION,
  UNKNOWN;

  /** Name as users write it, for instance {@code sliding_window}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  /**
   * The kind of a name in any letter case.
   *
   * @throws BifocalException {@code INVALID_OPTION} with the known kinds
   */
  public static LayerKind of(String name) {
    return Vector.of(values())
        .find(kind -> kind.label().equalsIgnoreCase(name))
        .getOrElseThrow(
            () ->
                BifocalException.of(
                    ErrorCode.INVALID_OPTION,
                    "Unknown KV cache group kind '"
                        + name
                        + "' in backend_per_kind. Valid kinds are: "
                        + Vector.of(values()).map(LayerKind::label).sorted().mkString(", ")
                        + "."));
  }

  /** The kind of a layer; sinks do not change it. */
  public static LayerKind of(AttentionLayerSpec layer) {
    if (layer.type() == AttentionType.ENCODER_ONLY) {
      return ENCODER_ONLY_ATTENTION;
    }
    if (layer.type() == AttentionType.ENCODER_DECODER) {
      return CROSS_ATTENTION;
    }
    boolean windowed = layer.mask().window().isDefined();
    return switch (layer) {
      case AttentionLayerSpec.Mla mla -> windowed ? SLIDING_WINDOW_MLA : MLA_ATTENTION;
      case AttentionLayerSpec.SparseMla sparse -> windowed ? SLIDING_WINDOW_MLA : MLA_ATTENTION;
      case AttentionLayerSpec.Dense dense -> windowed ? SLIDING_WINDOW : FULL_ATTENTION;
      case AttentionLayerSpec.BlockSparse sparse -> windowed ? SLIDING_WINDOW : FULL_ATTENTION;
    };
  }
}

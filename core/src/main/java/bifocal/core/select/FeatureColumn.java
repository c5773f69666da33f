package bifocal.core.select;

import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.cache.BlockSizes;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionType;
import java.util.Locale;

/** The columns of the feature tables, in their order. */
public enum FeatureColumn {
  TABLE,
  BACKEND,
  VERSION,
  DTYPES,
  KV_DTYPES,
  BLOCK_SIZES,
  HEAD_SIZES,
  SINK,
  NON_CAUSAL,
  SPARSE,
  MM_PREFIX,
  DCP,
  ATTENTION_TYPES,
  COMPUTE_CAPABILITY;

  /** Name as the header line has it, for instance {@code kv_dtypes}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT);
  }

  /** What a row says in this column. */
  String cell(FeatureRow row) {
    return row.spellings().getOrElse(this, declared(row));
  }

  private String declared(FeatureRow row) {
    FeatureSet features = row.features();
    return switch (this) {
      case TABLE -> row.table().label();
      case BACKEND -> row.backend().value();
      case VERSION -> row.version();
      case DTYPES -> features.dtypes().mkString(", ");
      case KV_DTYPES -> features.kvCacheDtypes().mkString(", ");
      case BLOCK_SIZES -> blockSizes(features.blockSizes());
      case HEAD_SIZES -> features.headSizes().toString();
      case SINK -> yesOrNo(features.has(Feature.SINK));
      case NON_CAUSAL -> yesOrNo(features.has(Feature.NON_CAUSAL));
      case SPARSE -> row.table().tellsSparse() ? yesOrNo(features.has(Feature.SPARSE)) : "n/a";
      case MM_PREFIX -> yesOrNo(features.imageMasks().nonEmpty());
      case DCP -> yesOrNo(features.has(Feature.DCP));
      case ATTENTION_TYPES -> attentionTypes(features);
      case COMPUTE_CAPABILITY -> computeCapability(features.devices());
    };
  }

  private static String blockSizes(BlockSizes sizes) {
    return sizes.equals(BlockSizes.ANY) ? "Any" : sizes.toString();
  }

  private static String computeCapability(DeviceSupport devices) {
    if (!devices.platforms().contains(Platform.CUDA)) {
      return "N/A";
    }
    return devices.capabilities().isEmpty()
        ? "Any"
        : devices.capabilities().mkString(", ").replace(">=", "≥");
  }

  private static String yesOrNo(boolean supported) {
    return supported ? "yes" : "no";
  }

  private static String attentionTypes(FeatureSet features) {
    return features.types().size() == AttentionType.values().length
        ? "All"
        : features.types().map(FeatureColumn::typeName).mkString(", ");
  }

  private static String typeName(AttentionType type) {
    return switch (type) {
      case DECODER -> "Decoder";
      case ENCODER -> "Encoder";
      case ENCODER_ONLY -> "Encoder Only";
      case ENCODER_DECODER -> "Enc-Dec";
    };
  }
}

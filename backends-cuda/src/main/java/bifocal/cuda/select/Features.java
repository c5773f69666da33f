package bifocal.cuda.select;

import bifocal.core.backend.BackendName;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvLayouts;
import bifocal.core.layer.AttentionType;
import bifocal.core.select.FeatureRow;
import bifocal.core.select.FeatureTable;
import bifocal.core.tensor.DType;
import io.vavr.collection.LinkedHashSet;
import io.vavr.control.Option;

/** The words in which rows are declared. */
final class Features {
  /** What a backend has unless it says otherwise: fp16 and bf16, decoder layers, no features. */
  static final FeatureSet DECODER =
      FeatureSet.NONE
          .withDtypes(DType.FP16, DType.BF16)
          .withKvCacheDtypes(KvCacheDtype.AUTO)
          .withBlockSizes(BlockSizes.ANY)
          .withHeadSizes(HeadSizes.ANY)
          .withTypes(AttentionType.DECODER)
          .withKvLayouts(KvLayouts.NHD, KvLayouts.HND);

  private Features() {}

  /** A row of the standard table. */
  static FeatureRow standard(BackendName backend, String version, FeatureSet features) {
    return FeatureRow.of(FeatureTable.STANDARD, backend, version, features);
  }

  /** A row of the standard table, of a backend of one variant. */
  static FeatureRow standard(BackendName backend, FeatureSet features) {
    return standard(backend, "", features);
  }

  /** The same features and some more. */
  static FeatureSet plus(FeatureSet features, Feature... more) {
    return features.withFeatures(
        features.features().addAll(LinkedHashSet.of(more)).toJavaArray(Feature[]::new));
  }

  /** The same features without some. */
  static FeatureSet minus(FeatureSet features, Feature... fewer) {
    return features.withFeatures(
        features.features().removeAll(LinkedHashSet.of(fewer)).toJavaArray(Feature[]::new));
  }

  /** The same features without some types of cache. */
  static FeatureSet minus(FeatureSet features, KvCacheDtype... fewer) {
    return features.withKvCacheDtypes(
        features
            .kvCacheDtypes()
            .removeAll(LinkedHashSet.of(fewer))
            .toJavaArray(KvCacheDtype[]::new));
  }

  /** A reason, when a condition holds. */
  static Option<InvalidReason> when(
      boolean objectionable, ReasonCode code, String text, Object seen, String wanted) {
    return objectionable ? Option.some(new InvalidReason(code, text, seen, wanted)) : Option.none();
  }
}

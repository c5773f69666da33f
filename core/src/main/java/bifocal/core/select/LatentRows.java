package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.DecodeThreshold;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.LatentKvLayout;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionType;
import bifocal.core.tensor.DType;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import java.util.function.Function;

/** The words in which backends of latent attention are declared, on every platform. */
public final class LatentRows {
  /** What a dense latent backend has unless it says otherwise. */
  public static final FeatureSet DENSE =
      FeatureSet.NONE
          .withDtypes(DType.FP16, DType.BF16)
          .withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.FLOAT16, KvCacheDtype.BFLOAT16)
          .withBlockSizes(BlockSizes.ANY)
          .withHeadSizes(HeadSizes.ANY)
          .withTypes(AttentionType.DECODER)
          .withKvLayouts(LatentKvLayout.ROWS)
          .withFeatures(
              Feature.MLA, Feature.PCP, Feature.KV_CONNECTOR, Feature.ADAPTIVE_VERIFICATION);

  /** What a latent backend over chosen keys has unless it says otherwise. */
  public static final FeatureSet SPARSE = plus(DENSE, Feature.SPARSE);

  private LatentRows() {}

  /** The same features and some more. */
  public static FeatureSet plus(FeatureSet features, Feature... more) {
    return features.withFeatures(
        features.features().addAll(LinkedHashSet.of(more)).toJavaArray(Feature[]::new));
  }

  /** A row of the table of latent decode. */
  public static FeatureRow row(BackendName backend, FeatureSet features) {
    return FeatureRow.of(FeatureTable.MLA, backend, "", features);
  }

  /** A row of the table of DeepSeek V4. */
  public static FeatureRow deepSeekV4(BackendName backend, FeatureSet features) {
    return FeatureRow.of(FeatureTable.DEEPSEEK_V4, backend, "", features);
  }

  /** The same backend, with remarks that depend on the request. */
  public static BackendDeclaration remarking(
      BackendDeclaration backend, Function<AttentionRequest, Seq<String>> remarks) {
    return backend.remarking(remarks);
  }

  /** A backend that draws one line between decodes and prefills. */
  public static BackendDeclaration declare(
      FeatureRow row, GraphSupport graphSupport, DecodeThreshold decodes) {
    return declare(row, graphSupport, request -> decodes);
  }

  /** A backend whose line between decodes and prefills depends on the layer. */
  public static BackendDeclaration declare(
      FeatureRow row,
      GraphSupport graphSupport,
      Function<AttentionRequest, DecodeThreshold> decodes) {
    Capabilities capabilities = Capabilities.of(row.features());
    ResolvedVariant only = ResolvedVariant.of("", capabilities, graphSupport);
    return BackendDeclaration.of(row, capabilities, graphSupport)
        .choosing(request -> only.dividing(decodes.apply(request)));
  }
}

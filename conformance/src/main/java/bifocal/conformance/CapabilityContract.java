package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.graph.GraphKey;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** What is declared is complete: what is not declared is refused, and nothing is ignored. */
public interface CapabilityContract extends BackendContract {
  private Declared declared() {
    return new Declared(backend(), profile());
  }

  @Test
  default void declarationIsNotEmpty() {
    FeatureSet features = declared().features();
    assertThat(declared().dtypes()).as("types of queries").isNotEmpty();
    assertThat(declared().headSizes()).as("common head sizes").isNotEmpty();
    assertThat(declared().blockSizes()).as("common block sizes").isNotEmpty();
    assertThat(features.kvLayouts()).as("cache layouts").isNotEmpty();
    assertThat(features.kvCacheDtypes()).as("cache types").isNotEmpty();
    assertThat(features.types()).as("attention types").isNotEmpty();
    assertThat(features.devices().accepts(profile())).as("runs on %s", profile()).isTrue();
    assertThat(declared().runs(declared().plain())).as("runs the plainest layer").isTrue();
  }

  /** A layer that asks for what is not declared gets neither a builder nor an implementation. */
  @TestFactory
  default Stream<DynamicTest> whatIsNotDeclaredIsRefused() {
    FeatureSet features = declared().features();
    Dense plain = declared().plain();
    Seq<Dense> layers =
        Vector.ofAll(
                Vector.of(DType.FP32, DType.FP16, DType.BF16)
                    .filter(dtype -> !features.dtypes().contains(dtype))
                    .map(dtype -> declared().plain(dtype)))
            .appendAll(
                declared()
                    .refusedHeadSizes()
                    .map(size -> Dense.decoder(4, 2, size, plain.dtype(), plain.mask())))
            .appendAll(
                Vector.of(AttentionType.values())
                    .filter(type -> !features.types().contains(type))
                    .map(type -> plain.withType(type).withMask(AttentionMask.BIDIRECTIONAL)))
            .appendAll(
                Vector.of(ImageMask.OVERRIDE, ImageMask.CLAMP_PAST, ImageMask.CLAMP_BOTH)
                    .filter(mode -> !features.imageMasks().contains(mode))
                    .map(mode -> plain.withMask(AttentionMask.CAUSAL.withImages(mode))))
            .appendAll(without(Feature.SINK, plain.withSinks(true)))
            .appendAll(without(Feature.SOFTCAP, plain.withSoftcap(30)))
            .appendAll(without(Feature.ALIBI, plain.withAlibi(true)))
            .appendAll(without(Feature.NON_CAUSAL, plain.withMask(AttentionMask.BIDIRECTIONAL)))
            .appendAll(
                without(Feature.SLIDING_WINDOW, plain.withMask(AttentionMask.CAUSAL.withWindow(8))))
            .appendAll(
                without(
                    Feature.CHUNKED_LOCAL,
                    plain.withMask(
                        new AttentionMask(true, Option.none(), ImageMask.NONE, Option.some(8)))))
            .appendAll(otherValueHead(plain));
    return layers
        .map(layer -> Checks.test(Checks.name(layer), () -> requireRefused(layer)))
        .toJavaStream();
  }

  private Seq<Dense> otherValueHead(Dense plain) {
    Option<Integer> other = declared().headSizes().find(size -> size != plain.headSizeV());
    return other
        .map(size -> without(Feature.HEAD_SIZE_V, plain.withHeadSizeV(size)))
        .getOrElse(Vector.empty());
  }

  private Seq<Dense> without(Feature feature, Dense layer) {
    return declared().has(feature) ? Vector.empty() : Vector.of(layer);
  }

  private void requireRefused(Dense layer) {
    requireRefused(backend(), layer);
  }

  private <M extends AttentionMetadata> void requireRefused(
      AttentionBackend<M> backend, Dense layer) {
    KvCacheSpec usual = cacheSpec(declared().plain(), Option.none(), KvScales.ONE);
    KvCacheSpec spec =
        new KvCacheSpec(
            usual.layout(),
            usual.dtype(),
            usual.blockSize(),
            layer.numKvHeads(),
            layer.headSize(),
            layer.headSizeV(),
            usual.scales());
    try (TestDevice device = openDevice()) {
      Tensors tensors = new Tensors(device, ValueSource.seeded(1), layer);
      LayerParameters parameters = tensors.onDevice(tensors.hostParameters(1));
      Checks.refused(
          "a builder and an implementation of a layer that is not declared",
          () -> {
            backend.createBuilder(LayerGroup.of("undeclared", layer), spec).close();
            backend.createImpl(layer, parameters, spec).close();
          });
    }
  }

  /** A batch may be captured exactly if its kind is declared, and equal batches have equal keys. */
  @Test
  default void captureKeysFollowTheDeclaration() {
    Dense layer = declared().plain();
    GraphSupport support = backend().graphSupport(LayerGroup.of("conformance", layer));
    Setup setup = Setup.of(layer, Seeds.first()).withStepsInFlight(4);
    try (Rig<?> rig = Rig.open(this, setup);
        Step<?> decode = rig.build(BatchPlan.of(1, 20, 1, 33));
        Step<?> later = rig.build(BatchPlan.of(1, 77, 1, 12));
        Step<?> uniform = rig.build(BatchPlan.of(4, 20, 4, 33));
        Step<?> mixed = rig.build(BatchPlan.of(1, 20, 9, 33))) {
      GraphKey key = decode.metadata().graphKey();
      assertThat(key.captureSafe())
          .as("decodes may be captured")
          .isEqualTo(support != GraphSupport.NEVER);
      assertThat(uniform.metadata().graphKey().captureSafe())
          .as("batches of equal lengths may be captured")
          .isEqualTo(support.compareTo(GraphSupport.UNIFORM_BATCH) >= 0);
      assertThat(mixed.metadata().graphKey().captureSafe())
          .as("any batch may be captured")
          .isEqualTo(support == GraphSupport.ALWAYS);
      if (support != GraphSupport.NEVER) {
        assertThat(later.metadata().graphKey()).isEqualTo(key);
      }
    }
  }
}

package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.KvContract;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvScales;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/**
 * Two backends that share a cache, in every layout, type and kind of scale that both declare:
 * written by either and read by either, the results are those of the reference, and it does not
 * show who wrote.
 */
public abstract class KvCachePairContract implements BackendContract {
  private static final int LARGE_HEAD = 256;

  /** The other backend. */
  public abstract AttentionBackend<?> other();

  @Override
  public KvCacheSpec cacheSpec(Dense layer, Option<Integer> blockSize, KvScales scales) {
    return cacheSpec(layer, blockSize, scales, Vector.empty());
  }

  private KvCacheSpec cacheSpec(
      Dense layer, Option<Integer> blockSize, KvScales scales, Seq<KvLayout> layouts) {
    return KvContract.resolve(
            party("writer", backend(), layer, layouts),
            Vector.of(
                party("reader", backend(), layer, layouts),
                party("writer", other(), layer, layouts),
                party("reader", other(), layer, layouts)),
            layer,
            scales,
            blockSize)
        .fold(
            reasons -> {
              throw new AssertionError("no common cache for " + layer + ": " + reasons);
            },
            spec -> spec);
  }

  /** What a backend does with the cache, restricted to some layouts if there are any. */
  private KvContract.Party party(
      String role, AttentionBackend<?> backend, Dense layer, Seq<KvLayout> layouts) {
    FeatureSet features = features(backend, layer);
    return new KvContract.Party(
        role + " " + backend.name(),
        layouts.isEmpty()
            ? features
            : features.withKvLayouts(layouts.toJavaArray(KvLayout[]::new)));
  }

  private FeatureSet features(AttentionBackend<?> backend, Dense layer) {
    return backend.capabilities(AttentionRequest.of(layer, profile())).all();
  }

  @TestFactory
  public Stream<DynamicTest> writtenByEitherAndReadByEither() {
    return shared()
        .flatMap(cache -> Vector.of(backend(), other()).map(reader -> test(reader, cache)))
        .toJavaStream();
  }

  /** A pair without a common cache would pass by testing nothing. */
  @Test
  public void thereIsACacheThatBothUse() {
    assertThat(shared()).isNotEmpty();
  }

  /** A cache that both backends declare. */
  private record Shared(Dense layer, KvLayout layout, KvScales scales) {
    @Override
    public String toString() {
      return layout.name()
          + ", "
          + Checks.name(layer)
          + (scales.isOne() ? "" : ", scales " + scales.getClass().getSimpleName());
    }
  }

  private Seq<Shared> shared() {
    return layers()
        .flatMap(
            layer -> layouts(layer).flatMap(l -> scales(layer).map(s -> new Shared(layer, l, s))));
  }

  private Seq<Dense> layers() {
    Declared mine = new Declared(backend(), profile());
    Declared others = new Declared(other(), profile());
    Seq<Integer> sizes = mine.headSizes().filter(others.headSizes()::contains);
    Seq<Integer> tested = sizes.take(1).appendAll(sizes.filter(s -> s == LARGE_HEAD)).distinct();
    return mine.dtypes()
        .flatMap(
            dtype ->
                Vector.ofAll(mine.features().kvCacheDtypes())
                    .distinctBy(cache -> cache.resolve(dtype))
                    .flatMap(
                        cache ->
                            tested.map(
                                size ->
                                    Dense.decoder(4, 2, size, dtype, AttentionMask.CAUSAL)
                                        .withKvCacheDtype(cache))))
        .filter(mine::runs)
        .filter(others::runs);
  }

  private Seq<KvLayout> layouts(Dense layer) {
    Seq<KvLayout> theirs = features(other(), layer).kvLayouts();
    return features(backend(), layer)
        .kvLayouts()
        .filter(layout -> theirs.exists(l -> l.name().equals(layout.name())));
  }

  private Seq<KvScales> scales(Dense layer) {
    Seq<KvScales> scales = Vector.of(KvScales.ONE);
    KvCacheDtype dtype = layer.kvCacheDtype().resolve(layer.dtype());
    if (dtype != KvCacheDtype.FP8_E4M3 && dtype != KvCacheDtype.FP8_E5M2) {
      return scales;
    }
    if (bothHave(Feature.KV_SCALES, layer)) {
      scales = scales.append(new KvScales.PerTensor(0.037f, 0.21f));
    }
    if (bothHave(Feature.PER_HEAD_QUANT_SCALES, layer)) {
      scales =
          scales.append(
              new KvScales.PerHead(new float[] {0.037f, 0.3f}, new float[] {0.21f, 0.05f}));
    }
    return scales;
  }

  private boolean bothHave(Feature feature, Dense layer) {
    return features(backend(), layer).has(feature) && features(other(), layer).has(feature);
  }

  private DynamicTest test(AttentionBackend<?> reader, Shared cache) {
    return Checks.test(
        reader.name() + " reads what either wrote, " + cache,
        () -> {
          Seq<Outcome> mine = run(backend(), reader, cache);
          Seq<Outcome> others = run(other(), reader, cache);
          mine.zip(others).forEach(pair -> pair._1().requireSameBitsAs(pair._2()));
        });
  }

  private <R extends AttentionMetadata> Seq<Outcome> run(
      AttentionBackend<?> writer, AttentionBackend<R> reader, Shared cache) {
    Setup setup = Setup.of(cache.layer(), Seeds.first()).withScales(cache.scales());
    try (Rig<R> rig = Rig.open(reader, writer, new InLayout(this, cache.layout()), setup)) {
      Outcome prefill = rig.run(BatchPlan.of(20, 20, 9, 9, 17, 17));
      prefill.requireRight();
      Outcome decode = rig.run(BatchPlan.of(1, 21, 3, 12, 1, 18));
      decode.requireRight();
      return Vector.of(prefill, decode);
    }
  }

  /** The pair, over one of the layouts that it shares. */
  private record InLayout(KvCachePairContract pair, KvLayout layout) implements BackendContract {
    @Override
    public AttentionBackend<?> backend() {
      return pair.backend();
    }

    @Override
    public DeviceProfile profile() {
      return pair.profile();
    }

    @Override
    public TestDevice openDevice() {
      return pair.openDevice();
    }

    @Override
    public TestDevice openGuardedDevice() {
      return pair.openGuardedDevice();
    }

    @Override
    public KvCacheSpec cacheSpec(Dense layer, Option<Integer> blockSize, KvScales scales) {
      return pair.cacheSpec(layer, blockSize, scales, Vector.of(layout));
    }
  }
}

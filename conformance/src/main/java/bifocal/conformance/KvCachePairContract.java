package bifocal.conformance;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.KvContract;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/**
 * Two backends that share a cache: written by either and read by either, the results are those of
 * the reference.
 */
public abstract class KvCachePairContract implements BackendContract {
  /** The other backend. */
  public abstract AttentionBackend<?> other();

  @Override
  public KvCacheSpec cacheSpec(Dense layer, Option<Integer> blockSize, KvScales scales) {
    AttentionRequest request = AttentionRequest.of(layer, profile());
    return KvContract.resolve(
            KvContract.Party.writer(backend(), request),
            Vector.of(
                KvContract.Party.reader(backend(), request),
                KvContract.Party.writer(other(), request),
                KvContract.Party.reader(other(), request)),
            layer,
            scales,
            blockSize)
        .fold(
            reasons -> {
              throw new AssertionError("no common cache for " + layer + ": " + reasons);
            },
            spec -> spec);
  }

  @TestFactory
  public Stream<DynamicTest> writtenByEitherAndReadByEither() {
    Declared mine = new Declared(backend(), profile());
    Declared others = new Declared(other(), profile());
    Seq<Dense> layers =
        mine.dtypes()
            .flatMap(
                dtype ->
                    Vector.ofAll(mine.features().kvCacheDtypes())
                        .map(cache -> mine.plain(dtype).withKvCacheDtype(cache)))
            .filter(mine::runs)
            .filter(others::runs);
    return Vector.of(backend(), other())
        .flatMap(
            writer ->
                Vector.of(backend(), other())
                    .flatMap(reader -> layers.map(layer -> pair(writer, reader, layer))))
        .toJavaStream();
  }

  private DynamicTest pair(AttentionBackend<?> writer, AttentionBackend<?> reader, Dense layer) {
    return Checks.test(
        writer.name() + " writes, " + reader.name() + " reads, " + Checks.name(layer),
        () -> writeAndRead(writer, reader, layer));
  }

  private <R extends AttentionMetadata> void writeAndRead(
      AttentionBackend<?> writer, AttentionBackend<R> reader, Dense layer) {
    try (Rig<R> rig = Rig.open(reader, writer, this, Setup.of(layer, Seeds.first()))) {
      rig.run(BatchPlan.of(40, 40, 9, 9, 33, 33)).requireRight();
      rig.run(BatchPlan.of(1, 41, 3, 12, 1, 34)).requireRight();
    }
  }
}

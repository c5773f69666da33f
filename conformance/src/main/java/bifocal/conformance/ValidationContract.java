package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.conformance.memory.TestDevice;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvContract;
import bifocal.core.backend.ReasonCode;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import org.junit.jupiter.api.Test;

/**
 * Validation tells the truth both ways, over layers drawn by chance: what validates gets a builder
 * and an implementation and runs right, and what does not gets no builder or no implementation.
 */
public interface ValidationContract extends BackendContract {
  /** Layers of one seed. */
  int LAYERS = 60;

  @Test
  default void whatValidatesRunsAndWhatDoesNotIsRefused() {
    for (long seed : Seeds.several(3)) {
      RandomLayers layers = new RandomLayers(seed);
      int valid = 0;
      for (int i = 0; i < LAYERS; i++) {
        RandomLayers.Drawn drawn = layers.next();
        try {
          valid += check(drawn, seed) ? 1 : 0;
        } catch (AssertionError | RuntimeException e) {
          throw new AssertionError(
              "seed " + seed + ", layer " + i + ", " + drawn + ": " + e.getMessage(), e);
        }
      }
      assertThat(valid).as("valid layers of seed %d", seed).isBetween(1, LAYERS - 1);
    }
  }

  private boolean check(RandomLayers.Drawn drawn, long seed) {
    AttentionRequest plain = AttentionRequest.of(drawn.layer(), profile());
    AttentionRequest request = drawn.page().map(plain::withBlockSize).getOrElse(plain);
    Seq<InvalidReason> reasons = reasons(request);
    if (reasons.isEmpty()) {
      runs(drawn, seed);
    } else {
      refused(backend(), drawn, reasons);
    }
    return reasons.isEmpty();
  }

  /** What speaks against the layer or against a cache for it. */
  private Seq<InvalidReason> reasons(AttentionRequest request) {
    Validation<Seq<InvalidReason>, BackendValidator.Accepted> accepted =
        new BackendValidator(BackendValidator.Scope.EXECUTION).validate(backend(), request);
    if (accepted.isInvalid() || !request.layer().type().usesKvCache()) {
      return accepted.isInvalid() ? accepted.getError() : Vector.empty();
    }
    Validation<Seq<InvalidReason>, KvCacheSpec> contract =
        KvContract.resolve(
            KvContract.Party.writer(backend(), request),
            Vector.of(KvContract.Party.reader(backend(), request)),
            request.layer(),
            KvScales.ONE,
            request.blockSize());
    return contract.isInvalid() ? contract.getError() : Vector.empty();
  }

  private void runs(RandomLayers.Drawn drawn, long seed) {
    Setup setup = Setup.of(drawn.layer(), seed);
    Setup paged = drawn.page().map(setup::withBlockSize).getOrElse(setup);
    try (Rig<?> rig = Rig.open(this, paged)) {
      if (drawn.layer().type() == AttentionType.DECODER) {
        RandomBatches batches = new RandomBatches(seed, 3, 60);
        boolean images = drawn.layer().mask().seesImages();
        rig.run(images ? batches.nextWithImages() : batches.next()).requireRight();
      }
    }
  }

  private <M extends AttentionMetadata> void refused(
      AttentionBackend<M> backend, RandomLayers.Drawn drawn, Seq<InvalidReason> reasons) {
    Dense layer = drawn.layer();
    try (TestDevice device = openDevice()) {
      Tensors tensors = new Tensors(device, ValueSource.seeded(1), layer);
      LayerParameters parameters = tensors.onDevice(tensors.hostParameters(1));
      Checks.refused(
          "a builder and an implementation in spite of " + reasons,
          () -> {
            KvCacheSpec spec = asAsked(drawn, reasons);
            backend.createBuilder(LayerGroup.of("refused", layer), spec).close();
            backend.createImpl(layer, parameters, spec).close();
          });
    }
  }

  /** The cache that comes nearest to what is asked for, whether or not the backend can have it. */
  private KvCacheSpec asAsked(RandomLayers.Drawn drawn, Seq<InvalidReason> reasons) {
    KvCacheSpec usual =
        cacheSpec(new Declared(backend(), profile()).plain(), Option.none(), KvScales.ONE);
    Dense layer = drawn.layer();
    KvCacheDtype dtype = layer.kvCacheDtype().resolve(layer.dtype());
    boolean pageRefused = reasons.exists(reason -> reason.code() == ReasonCode.BLOCK_SIZE);
    return new KvCacheSpec(
        usual.layout(),
        dtype == KvCacheDtype.AUTO ? usual.dtype() : dtype,
        pageRefused ? drawn.page().getOrElse(usual.blockSize()) : usual.blockSize(),
        layer.numKvHeads(),
        layer.headSize(),
        layer.headSizeV(),
        KvScales.ONE);
  }
}

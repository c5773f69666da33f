package bifocal.conformance;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import bifocal.conformance.BatchPlan.Image;
import bifocal.conformance.BatchPlan.Request;
import bifocal.core.backend.Feature;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Steps that follow each other over one cache, and batches that mean nothing to each other. */
public interface SequenceContract extends BackendContract {
  private Declared declared() {
    return new Declared(backend(), profile());
  }

  private Seq<Dense> layers() {
    Dense plain = declared().plain();
    return Vector.of(plain, plain.withMask(AttentionMask.CAUSAL.withWindow(20)));
  }

  /** A prompt in chunks of any size gives each token what the prompt at once gives it. */
  @TestFactory
  default Stream<DynamicTest> chunkedPrefillEqualsPrefillAtOnce() {
    return Checks.forEach(
        this,
        layers(),
        layer -> {
          for (int chunk : new int[] {100, 1, 7, 16, 33}) {
            Checks.agrees(this, Setup.of(layer, Seeds.first()), chunks(100, chunk));
          }
        });
  }

  private static BatchPlan[] chunks(int length, int chunk) {
    Seq<BatchPlan> steps = Vector.empty();
    for (int from = 0; from < length; from += chunk) {
      int to = Math.min(length, from + chunk);
      steps = steps.append(BatchPlan.of(to - from, to));
    }
    return steps.toJavaArray(BatchPlan[]::new);
  }

  @TestFactory
  default Stream<DynamicTest> decodesAfterAPrefill() {
    return Checks.forEach(
        this,
        layers(),
        layer ->
            Checks.agrees(
                this,
                Setup.of(layer, Seeds.first()),
                BatchPlan.of(31, 31, 14, 14),
                BatchPlan.of(1, 32, 1, 15),
                BatchPlan.of(1, 33, 1, 16),
                BatchPlan.of(1, 34, 1, 17),
                BatchPlan.of(4, 38, 3, 20)));
  }

  /** A chunk may begin inside an image whose beginning is in the cache already. */
  @TestFactory
  default Stream<DynamicTest> chunksThatBeginInsideACachedImage() {
    return Checks.forEach(
        this,
        declared()
            .imageMasks()
            .map(mode -> declared().plain().withMask(AttentionMask.CAUSAL.withImages(mode))),
        layer ->
            Checks.agrees(
                this,
                Setup.of(layer, Seeds.first()),
                BatchPlan.withImages(30, 50, 5, 44),
                BatchPlan.withImages(1, 51, 5, 44)));
  }

  @Test
  default void batchesWithoutRequestsWriteNothing() {
    try (Rig<?> rig = Rig.open(this, Setup.of(declared().plain(), Seeds.first()))) {
      rig.run(BatchPlan.of()).requireUntouched();
      rig.run(BatchPlan.of().padded(3)).requireUntouched();
    }
  }

  @Test
  default void requestsWithoutQueriesWriteNothing() {
    try (Rig<?> rig = Rig.open(this, Setup.of(declared().plain(), Seeds.first()))) {
      rig.run(BatchPlan.of(0, 40, 0, 0, 0, 17)).requireUntouched();
      rig.run(BatchPlan.of(0, 40, 5, 9, 0, 17, 1, 33, 0, 0)).requireRight();
    }
  }

  /** Whatever the arrays say of padding, nothing changes for live requests, not one bit. */
  @Test
  default void rubbishInPaddingChangesNothing() {
    for (long seed : Seeds.several(2)) {
      Seq<Dense> layers =
          declared()
              .imageMasks()
              .headOption()
              .map(mode -> declared().plain().withMask(AttentionMask.CAUSAL.withImages(mode)))
              .toVector()
              .append(declared().plain());
      for (Dense layer : layers) {
        BatchPlan batch = new RandomBatches(seed, 5, 90).nextWithImages();
        BatchPlan clean = new BatchPlan(batch.requests(), 0, false);
        try (Rig<?> rig = Rig.open(this, Setup.of(layer, seed))) {
          Outcome expected = rig.run(clean);
          expected.requireRight();
          rig.run(clean.padded(3)).requireSameBitsAs(expected);
        }
      }
    }
  }

  @Test
  default void theSameStepTwiceGivesTheSameBits() {
    BatchPlan batch = BatchPlan.of(37, 37, 9, 70, 1, 33, 1, 140);
    try (Rig<?> rig = Rig.open(this, Setup.of(declared().plain(), Seeds.first()))) {
      rig.run(batch).requireSameBitsAs(rig.run(batch));
    }
  }

  /** Several batches alive at once, run in another order than they were built in. */
  @Test
  default void severalBatchesAliveAtOnce() {
    BatchPlan[] batches = {
      BatchPlan.of(20, 20, 1, 33), BatchPlan.of(1, 21, 1, 34, 1, 12), BatchPlan.of(0, 21, 40, 74)
    };
    Setup setup = Setup.of(declared().plain(), Seeds.first()).withStepsInFlight(3);
    for (int[] order : new int[][] {{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
      try (Rig<?> rig = Rig.open(this, setup)) {
        aliveAtOnce(rig, batches, order);
      }
    }
  }

  private static void aliveAtOnce(Rig<?> rig, BatchPlan[] batches, int[] order) {
    rig.writeTokens(0, 0, 21);
    rig.writeTokens(1, 0, 74);
    rig.writeTokens(2, 0, 12);
    Step<?>[] steps = new Step<?>[batches.length];
    for (int i = 0; i < batches.length; i++) {
      steps[i] = rig.build(batches[i]);
    }
    for (int i : order) {
      steps[i].run().requireRight();
    }
    for (Step<?> step : steps) {
      step.close();
    }
  }

  /** A request gives the same bits in whatever company, where the backend promises it. */
  @Test
  default void companyOfABatchChangesNothingWhereThatIsDeclared() {
    assumeTrue(declared().has(Feature.BATCH_INVARIANCE), "batch invariance is not declared");
    Dense layer = declared().plain();
    try (Rig<?> rig = Rig.open(this, Setup.of(layer, Seeds.first()))) {
      Request request = new Request(0, 7, 55, Vector.<Image>empty());
      Outcome alone = rig.run(new BatchPlan(Vector.of(request), 0, false));
      Outcome among =
          rig.run(
              new BatchPlan(Vector.of(request, new Request(1, 44, 44, Vector.empty())), 0, false));
      int first = declared().has(Feature.INDIRECT_REQUESTS) ? Rig.UNUSED_ROWS : 0;
      for (int i = 0; i < 7; i++) {
        alone.requireSameRow(first + i, among, first + i);
      }
    }
  }
}

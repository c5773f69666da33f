package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import bifocal.conformance.BatchPlan.Image;
import bifocal.conformance.BatchPlan.Request;
import bifocal.core.backend.Feature;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.reference.HostTensor;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Masks: who sees whom is what the layer declares, cell by cell. */
public interface MaskContract extends BackendContract {
  private Declared declared() {
    return new Declared(backend(), profile());
  }

  private Dense plain() {
    return declared().plain();
  }

  private static BatchPlan mixed() {
    return BatchPlan.of(37, 37, 9, 70, 1, 33, 1, 1, 3, 64, 1, 130);
  }

  @TestFactory
  default Stream<DynamicTest> slidingWindows() {
    return Checks.forEach(
        this,
        Vector.of(1, 2, 15, 16, 17, 31, 33, 64, 1000)
            .map(window -> plain().withMask(AttentionMask.CAUSAL.withWindow(window))),
        layer -> Checks.agrees(this, Setup.of(layer, Seeds.first()), mixed()));
  }

  @TestFactory
  default Stream<DynamicTest> chunkedLocalAttention() {
    return Checks.forEach(
        this,
        Vector.of(1, 5, 16, 40)
            .map(
                chunk ->
                    plain()
                        .withMask(
                            new AttentionMask(
                                true, Option.none(), ImageMask.NONE, Option.some(chunk)))),
        layer -> Checks.agrees(this, Setup.of(layer, Seeds.first()), mixed()));
  }

  @TestFactory
  default Stream<DynamicTest> nonCausalDecoders() {
    return Checks.forEach(
        this,
        Vector.of(
                AttentionMask.BIDIRECTIONAL,
                AttentionMask.BIDIRECTIONAL.withWindow(1),
                AttentionMask.BIDIRECTIONAL.withWindow(7),
                AttentionMask.BIDIRECTIONAL.withWindow(33))
            .map(plain()::withMask),
        layer -> Checks.agrees(this, Setup.of(layer, Seeds.first()), mixed()));
  }

  /** Images shorter and longer than the window, touching, of one token, cached and beyond. */
  @TestFactory
  default Stream<DynamicTest> everyDeclaredImageMask() {
    Seq<AttentionMask> windows =
        Vector.of(
            AttentionMask.CAUSAL,
            AttentionMask.CAUSAL.withWindow(4),
            AttentionMask.CAUSAL.withWindow(18),
            AttentionMask.CAUSAL.withWindow(500));
    return Checks.forEach(
        this,
        declared()
            .imageMasks()
            .flatMap(mode -> windows.map(mask -> plain().withMask(mask.withImages(mode)))),
        layer -> Checks.agrees(this, Setup.of(layer, Seeds.first()), images()));
  }

  private static BatchPlan[] images() {
    return new BatchPlan[] {
      BatchPlan.withImages(13, 13, 5, 11),
      BatchPlan.withImages(40, 40, 0, 39),
      BatchPlan.withImages(40, 40, 20, 29, 0, 9, 10, 19),
      BatchPlan.withImages(20, 60, 5, 35, 41, 55),
      BatchPlan.withImages(10, 60, 30, 49, 51, 51, 52, 59, 60, 90),
      BatchPlan.withImages(1, 60, 30, 59),
      new BatchPlan(
          Vector.of(
              new Request(0, 30, 30, Vector.of(new Image(3, 28))),
              new Request(1, 1, 77, Vector.of(new Image(3, 28))),
              new Request(2, 33, 66, Vector.of(new Image(40, 65), new Image(0, 39))),
              new Request(3, 8, 8, Vector.empty())),
          1,
          false)
    };
  }

  /** A group that does not know images runs their tokens as text. */
  @Test
  default void imagesMeanNothingToALayerWithoutAnImageMask() {
    Checks.agrees(this, Setup.of(plain(), Seeds.first()), BatchPlan.withImages(40, 40, 10, 30));
  }

  /** Each request is one run that sees as far ahead as its right window says. */
  @TestFactory
  default Stream<DynamicTest> runsWithARightWindowOfTheirOwn() {
    Seq<DynamicTest> tests = Vector.empty();
    for (AttentionMask mask : Vector.of(AttentionMask.CAUSAL, AttentionMask.CAUSAL.withWindow(9))) {
      Dense layer = plain().withMask(mask);
      if (declared().has(Feature.NON_CAUSAL_LEFT_WINDOW) && declared().runs(layer)) {
        tests = tests.append(runs(layer, -1));
      }
      if (declared().has(Feature.RIGHT_WINDOW) && declared().runs(layer)) {
        tests = tests.append(runs(layer, 3)).append(runs(layer, 8)).append(runs(layer, 0));
      }
    }
    return tests.toJavaStream();
  }

  private DynamicTest runs(Dense layer, int rightWindow) {
    return Checks.test(
        Checks.name(layer) + ", right window " + rightWindow,
        () -> {
          try (Rig<?> rig = Rig.open(this, Setup.of(layer, Seeds.first()))) {
            BatchPlan batch = BatchPlan.of(30, 45, 12, 12);
            rig.run(
                    batch,
                    new int[] {0, 1},
                    whole ->
                        whole
                            .cut(2)
                            .run(0, 15, 44, rightWindow)
                            .run(1, 0, 11, rightWindow)
                            .withoutImages())
                .requireRight();
          }
        });
  }

  /** One request as three runs: its q rows and its row of the block table are shared. */
  @Test
  default void runsCutOutOfOneRequest() {
    Dense layer = plain().withMask(AttentionMask.CAUSAL.withWindow(9));
    assumeTrue(
        declared().runs(layer)
            && declared().has(Feature.NON_CAUSAL_LEFT_WINDOW)
            && declared().has(Feature.INDIRECT_REQUESTS),
        "runs over shared rows are not declared");
    try (Rig<?> rig = Rig.open(this, Setup.of(layer, Seeds.first()))) {
      rig.run(
              BatchPlan.of(5, 20, 30, 45),
              new int[] {1, 1, 1, 0},
              whole ->
                  whole
                      .cut(4)
                      .run(1, 15, 19, 0)
                      .run(1, 20, 38, -1)
                      .run(1, 39, 44, 0)
                      .request(0)
                      .withoutImages())
          .requireRight();
    }
  }

  /** Some requests of a batch in another order; rows of the others stay as they are. */
  @Test
  default void someRequestsOfABatch() {
    assumeTrue(declared().has(Feature.INDIRECT_REQUESTS), "indirect requests are not declared");
    try (Rig<?> rig = Rig.open(this, Setup.of(plain(), Seeds.first()))) {
      rig.run(
              BatchPlan.of(5, 20, 9, 9, 1, 33, 4, 40),
              new int[] {3, 1},
              whole -> whole.cut(2).request(3).request(1).withImages())
          .requireRight();
    }
  }

  @TestFactory
  default Stream<DynamicTest> encodersWithoutACache() {
    Seq<Dense> layers =
        Vector.of(AttentionType.ENCODER_ONLY, AttentionType.ENCODER)
            .flatMap(
                type ->
                    Vector.of(
                            AttentionMask.BIDIRECTIONAL,
                            AttentionMask.BIDIRECTIONAL.withWindow(6),
                            AttentionMask.CAUSAL)
                        .map(mask -> plain().withType(type).withMask(mask)));
    return Checks.forEach(
        this,
        layers,
        layer -> {
          try (Rig<?> rig = Rig.open(this, Setup.of(layer, Seeds.first()));
              Step<?> step = rig.build(BatchPlan.of(33, 33, 1, 1, 17, 17))) {
            step.runUncached().requireRight();
          }
        });
  }

  /** Queries of a decoder over keys of an encoder, more of either, and no keys at all. */
  @TestFactory
  default Stream<DynamicTest> independentKeys() {
    Dense cross =
        plain().withType(AttentionType.ENCODER_DECODER).withMask(AttentionMask.BIDIRECTIONAL);
    return Checks.forEach(
        this,
        Vector.of(cross, cross.withSinks(true), cross.withSoftcap(2)),
        layer ->
            Checks.agrees(
                this,
                Setup.of(layer, Seeds.first()),
                BatchPlan.of(5, 40, 30, 7, 1, 1, 1, 65).withIndependentKeys(),
                BatchPlan.of(3, 40, 4, 0, 2, 65).withIndependentKeys()));
  }

  /**
   * Few queries over so many keys that these may be divided into parts: the last token of an image
   * sees all of them, the text behind it only a window, so that it sees none of most parts.
   */
  @TestFactory
  default Stream<DynamicTest> partsOfTheKeysThatSomeQueriesDoNotSee() {
    return Checks.forEach(
        this,
        declared()
            .dtypes()
            .map(
                dtype ->
                    declared()
                        .small(dtype)
                        .withMask(
                            AttentionMask.CAUSAL.withWindow(40).withImages(ImageMask.OVERRIDE))),
        layer -> {
          int keys = NumbersContract.MANY_KEYS;
          Setup setup = Setup.of(layer, Seeds.first()).withRoom(1, keys);
          Checks.agrees(this, setup, BatchPlan.withImages(4, keys, 0, keys - 4));
        });
  }

  /**
   * No key: output 0 and a log-sum-exp of minus infinity, or the sink's value where there is one.
   */
  @TestFactory
  default Stream<DynamicTest> rowsThatSeeNothing() {
    Dense cross =
        plain().withType(AttentionType.ENCODER_DECODER).withMask(AttentionMask.BIDIRECTIONAL);
    return Checks.forEach(this, Vector.of(cross, cross.withSinks(true)), this::rowsThatSeeNothing);
  }

  private void rowsThatSeeNothing(Dense layer) {
    try (Rig<?> rig = Rig.open(this, Setup.of(layer, Seeds.first()))) {
      Outcome outcome = rig.run(BatchPlan.of(2, 20, 2, 0, 2, 33).withIndependentKeys());
      int row = 2 + (declared().has(Feature.INDIRECT_REQUESTS) ? Rig.UNUSED_ROWS : 0);
      float wanted =
          layer.sinks()
              ? HostTensor.over(rig.hostParameters().sinks().get()).at(1)
              : Float.NEGATIVE_INFINITY;
      assertThat(outcome.out(row, 1, 0)).isZero();
      outcome.lse(row, 1).forEach(lse -> assertThat(lse).isEqualTo(wanted));
      outcome.requireRight();
    }
  }
}

package bifocal.examples.engine;

import static bifocal.composite.guice.AttentionBinder.composites;

import bifocal.composite.CompositeMetadata;
import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.KvInput;
import bifocal.core.device.Platform;
import bifocal.core.engine.AttentionEngine;
import bifocal.core.engine.EngineGroup;
import bifocal.core.engine.EnginePlan;
import bifocal.core.engine.GroupPlan;
import bifocal.core.engine.GroupStep;
import bifocal.core.engine.SequenceImage;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.SelectionRequest;
import bifocal.core.select.Selector;
import bifocal.core.tensor.DType;
import bifocal.reference.Agreement;
import bifocal.reference.KeyValues;
import bifocal.reference.ReferenceAttention;
import bifocal.routing.PrefillDecodeRouting;
import com.google.inject.Module;
import java.lang.foreign.Arena;

/** An inference server in small: select, allocate, and serve two sessions with one beginning. */
public final class HostEngine {
  private static final BackendName PAIR = BackendName.of("HOST_PAIR");
  private static final Dense FULL = Dense.decoder(8, 2, 64, DType.BF16, AttentionMask.CAUSAL);
  private static final Dense SLIDING =
      FULL.withMask(AttentionMask.CAUSAL.withWindow(32).withImages(ImageMask.CLAMP_PAST));
  private static final SequenceImage PICTURE = new SequenceImage(8, 23, "hash of its pixels");
  private static final ToyModel MODEL = new ToyModel(64, 40);

  /** The host's own pair, bound as platforms bind theirs: prompts to one, answers to the other. */
  private static final Module HOST =
      binder ->
          composites(binder)
              .bind(PAIR)
              .of(KnownBackend.FLEX_ATTENTION.backend(), KnownBackend.CPU_ATTN.backend())
              .routedBy(PrefillDecodeRouting.class);

  public static void main(String[] arguments) {
    Selector selector =
        BifocalInjector.create(PlatformModules.detect().with(HOST)).getInstance(Selector.class);
    var host = selector.policy(Platform.CPU).probe().get();
    var sliding = selector.require(SelectionRequest.of(SLIDING, host));
    var full = selector.require(SelectionRequest.of(FULL, host).on(PAIR));
    System.out.println("sliding on " + sliding.backend() + ", full on " + full.backend());
    EnginePlan plan =
        EnginePlan.of(
            new BatchLimits(2, 64, 256),
            GroupPlan.of(LayerGroup.of("sliding", SLIDING), sliding),
            GroupPlan.of(LayerGroup.of("full", FULL), full));
    try (AttentionEngine engine = AttentionEngine.open(plan, 32)) {
      serve(engine, "session 0 reads the picture", begin(engine, 0, 45), 0);
      serve(engine, "session 0 answers, session 1 reads the rest", 1, begin(engine, 1, 47));
      serve(engine, "both answer", 1, 1);
    }
  }

  /** Looks for the beginning of a session's prompt in the cache; returns how much is to compute. */
  private static int begin(AttentionEngine engine, int session, int length) {
    int cached = engine.begin(session, MODEL.prompt(session, length), PICTURE);
    System.out.printf("session %d: %d of %d tokens are cached%n", session, cached, length);
    return length - cached;
  }

  private static void serve(AttentionEngine engine, String what, int... newTokens) {
    System.out.println(what);
    for (EngineGroup group : engine.groups()) {
      engine.execute(step -> attend(group, group.begin(step, group.schedule(newTokens))));
    }
    engine.publish();
  }

  /** One layer: writes the new keys and values, attends, and compares with the reference. */
  private static void attend(EngineGroup group, GroupStep<?> step) {
    Dense layer = (Dense) group.layers().spec();
    try (Arena arena = Arena.ofConfined()) {
      var batch = step.batch();
      var q = MODEL.rows(arena, batch, false, 0, layer.numHeads());
      var k = MODEL.rows(arena, batch, false, 1, layer.numKvHeads());
      var v = MODEL.rows(arena, batch, false, 2, layer.numKvHeads());
      var out = AttentionOutput.of(MODEL.rows(arena, batch, false, 3, layer.numHeads()));
      step.writeKv(0, new KvInput.Dense(k, v), group.cache(0));
      step.forward(0, q, group.cache(0), out);
      var keys = MODEL.rows(arena, batch, true, 1, layer.numKvHeads());
      var values = MODEL.rows(arena, batch, true, 2, layer.numKvHeads());
      var exact = ReferenceAttention.of(layer).all(q, KeyValues.dense(keys, values, batch), batch);
      System.out.printf(
          "  %-8s on child %s, %d blocks held, error %.0e%n",
          group.layers().name(),
          ((CompositeMetadata<?, ?>) step.metadata()).route().label(),
          group.blocks().numBlocks() - 1 - group.blocks().free(),
          Agreement.of(exact, out).error());
    }
  }
}

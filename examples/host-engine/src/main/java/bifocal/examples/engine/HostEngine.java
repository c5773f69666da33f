package bifocal.examples.engine;

import static bifocal.composite.guice.AttentionBinder.composites;

import bifocal.composite.CompositeMetadata;
import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.KvInput;
import bifocal.core.batch.ImageRanges;
import bifocal.core.device.Platform;
import bifocal.core.engine.AttentionEngine;
import bifocal.core.engine.EngineGroup;
import bifocal.core.engine.EnginePlan;
import bifocal.core.engine.GroupPlan;
import bifocal.core.engine.GroupStep;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.select.KnownBackend;
import bifocal.core.select.SelectionRequest;
import bifocal.core.select.Selector;
import bifocal.core.tensor.DType;
import bifocal.reference.Agreement;
import bifocal.reference.ReferenceAttention;
import bifocal.routing.PrefillDecodeRouting;
import com.google.inject.Module;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;

/** An inference server in small: select, allocate, and serve two sessions with one beginning. */
public final class HostEngine {
  private static final BackendName PAIR = BackendName.of("HOST_PAIR");
  private static final Dense FULL = Dense.decoder(8, 2, 64, DType.BF16, AttentionMask.CAUSAL);
  private static final Dense SLIDING =
      FULL.withMask(AttentionMask.CAUSAL.withWindow(32).withImages(ImageMask.CLAMP_PAST));
  private static final ImageRanges IMAGES = ImageRanges.of(new int[][] {{8, 23}, {8, 23}}, 2);
  private static final ToyModel MODEL = new ToyModel(64, 40);

  /** The host's own pair, bound as platforms bind theirs: prompts to one, answers to the other. */
  private static final Module HOST =
      binder ->
          composites(binder)
              .bind(PAIR)
              .of(KnownBackend.FLEX_ATTENTION.backend(), KnownBackend.CPU_ATTN.backend())
              .routedBy(PrefillDecodeRouting.class);

  public static void main(String[] arguments) {
    Vector<Module> modules = Vector.ofAll(PlatformModules.detect().present());
    Selector selector = BifocalInjector.create(modules.append(HOST)).getInstance(Selector.class);
    var host = selector.policy(Platform.CPU).probe().get();
    var sliding = selector.require(SelectionRequest.of(SLIDING, host));
    var full = selector.require(SelectionRequest.of(FULL, host).on(PAIR));
    System.out.println("sliding on " + sliding.backend() + ", full on " + full.backend());
    var groups =
        Vector.of(
            GroupPlan.of(LayerGroup.of("sliding", SLIDING), sliding),
            GroupPlan.of(LayerGroup.of("full", FULL), full));
    EnginePlan plan = EnginePlan.of(groups, Vector.of(new BatchLimits(2, 64, 256)));
    try (AttentionEngine engine = AttentionEngine.open(plan, 32)) {
      serve(engine, "session 0 reads the picture", 40, 0);
      engine.groups().forEach(group -> group.requests().share(0, 1));
      serve(engine, "both read their questions", 5, 7);
      serve(engine, "both answer", 1, 1);
    }
  }

  /** One step of the whole model: each session's next tokens. */
  private static void serve(AttentionEngine engine, String what, int... newTokens) {
    System.out.println(what);
    for (EngineGroup group : engine.groups()) {
      var batch = group.requests().schedule(newTokens, IMAGES);
      String seen = engine.run(step -> attend(group, group.begin(step, batch)));
      System.out.printf("  %-8s %s%n", group.layers().name(), seen);
    }
  }

  /** One layer: writes the new keys and values, attends, and compares with the reference. */
  private static String attend(EngineGroup group, GroupStep<?> step) {
    Dense layer = (Dense) group.layers().spec();
    try (Arena arena = Arena.ofShared()) {
      var q = MODEL.rows(arena, step.batch(), 0, layer.numHeads());
      var k = MODEL.rows(arena, step.batch(), 1, layer.numKvHeads());
      var v = MODEL.rows(arena, step.batch(), 2, layer.numKvHeads());
      var out = AttentionOutput.of(MODEL.rows(arena, step.batch(), 3, layer.numHeads()));
      step.writeKv(0, new KvInput.Dense(k, v), group.cache(0));
      step.forward(0, q, group.cache(0), out);
      return "on child %s, %d blocks held, error %.0e"
          .formatted(
              ((CompositeMetadata<?, ?>) step.metadata()).route().label(),
              group.blocks().numBlocks() - 1 - group.blocks().free(),
              Agreement.of(ReferenceAttention.of(layer).all(q, MODEL, step.batch()), out).error());
    }
  }
}

package consumer;

import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.KvInput;
import bifocal.core.device.Platform;
import bifocal.core.engine.AttentionEngine;
import bifocal.core.engine.EngineGroup;
import bifocal.core.engine.EnginePlan;
import bifocal.core.engine.GroupPlan;
import bifocal.core.engine.GroupStep;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import bifocal.core.select.Selector;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;

/** One step over one layer, with nothing but what the published modules bring. */
public final class Consumer {
  private static final int TOKENS = 5;

  private Consumer() {}

  public static void main(String[] arguments) {
    Dense layer = Dense.decoder(4, 2, 64, DType.FP32, AttentionMask.CAUSAL);
    Selector selector =
        BifocalInjector.create(PlatformModules.detect().present()).getInstance(Selector.class);
    SelectionReport selected =
        selector.require(SelectionRequest.of(layer, selector.policy(Platform.CPU).probe().get()));
    EnginePlan plan =
        EnginePlan.of(
            new BatchLimits(1, TOKENS, 64), GroupPlan.of(LayerGroup.of("full", layer), selected));
    try (AttentionEngine engine = AttentionEngine.open(plan, 8);
        Arena arena = Arena.ofShared()) {
      TensorView q = rows(arena, 4, 0.5f);
      TensorView k = rows(arena, 2, 0.5f);
      TensorView v = rows(arena, 2, 2f);
      TensorView out = rows(arena, 4, 0);
      EngineGroup group = engine.group("full");
      engine.execute(
          step -> {
            GroupStep<?> running = group.begin(step, group.schedule(TOKENS));
            running.writeKv(0, new KvInput.Dense(k, v), group.cache(0));
            running.forward(0, q, group.cache(0), AttentionOutput.of(out));
          });
      float seen = out.data().getAtIndex(ValueLayout.JAVA_FLOAT, out.elements() - 1);
      // Equal values have their value as mean, whatever the weights.
      if (Math.abs(seen - 2f) > 1e-5f) {
        throw new AssertionError("attention over values of 2 is " + seen);
      }
      System.out.println(selected.backend() + " computed " + seen + " where 2.0 is due");
    }
  }

  private static TensorView rows(Arena arena, int heads, float number) {
    TensorView rows =
        TensorView.ofHost(
            arena.allocate((long) TOKENS * heads * 64 * Float.BYTES, 64),
            DType.FP32,
            TOKENS,
            heads,
            64);
    for (long i = 0; i < rows.elements(); i++) {
      rows.data().setAtIndex(ValueLayout.JAVA_FLOAT, i, number);
    }
    return rows;
  }
}

package bifocal.cuda.flashinfer;

import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.flashinfer.FlashInferStep.Planned;
import bifocal.tvm.Arguments;
import bifocal.tvm.DeviceStream;
import bifocal.tvm.DlTensor;
import bifocal.tvm.ModuleFunction;
import io.vavr.control.Option;

/**
 * Calls of one module's {@code run} for one layer. What a layer fixes is set once; a call sets
 * tensors and the plan, and allocates nothing. It belongs to the thread that made it, which runs
 * steps.
 */
final class RunCall {
  private static final int FLOATS = 0;
  private static final int INTS = 1;
  private static final int PLAN = 2;
  private static final int QUERIES = 3;
  private static final int KEYS = 4;
  private static final int VALUES = 5;
  private static final double NO_ROTATION_SCALE = 1.0;
  private static final double NO_ROTATION_THETA = 1e-4;

  private final ModuleFunction run;
  private final Arguments arguments;
  private final Thread owner = Thread.currentThread();
  private final DlTensor[] tensors;
  private final boolean prefill;

  /** Where the tensors behind the values are. */
  private final int queryStart;

  private final int pageStart;
  private final int pages;
  private final int lastPageLen;
  private final int out;
  private final int lse;
  private final int mask;

  RunCall(
      LoadedModule module,
      AttentionLayerSpec.Dense layer,
      CacheTensors cache,
      TensorView ints,
      TensorView rows) {
    ModuleKey key = module.entry().key();
    this.prefill = key instanceof ModuleKey.Prefill;
    String name = prefill ? ModuleSignatures.PAGED_RUN : ModuleSignatures.RUN;
    this.run = module.function(name);
    int count = ModuleSignatures.of(key).get(name).get().parameters().length();
    this.arguments = module.runtime().arguments(count);
    this.tensors = new DlTensor[count];
    this.queryStart = prefill ? 6 : -1;
    this.pageStart = prefill ? 7 : 6;
    this.pages = pageStart + 1;
    this.lastPageLen = pageStart + 2;
    this.out = pageStart + 3;
    this.lse = pageStart + 4;
    this.mask = prefill ? pageStart + 5 : -1;
    int layout = prefill ? mask + 1 : lse + 1;
    arguments.integer(layout, cache.layoutCode());
    arguments.integer(layout + 1, layer.mask().leftWindow());
    arguments.bool(layout + 2, false);
    setExtras(key, layer, layout + 3);
    makeTensors(cache, ints, rows);
  }

  /** Absent tensors, then numbers. */
  private void setExtras(ModuleKey key, AttentionLayerSpec.Dense layer, int first) {
    int absent =
        switch (key) {
          case ModuleKey.Decode decode -> 1;
          case ModuleKey.Prefill fa2 when fa2.engine() == ModuleKey.Engine.FA2 -> 8;
          case ModuleKey.Prefill fa3 -> 4;
          case ModuleKey.Xqa xqa -> throw new IllegalStateException("XQA is called in another way");
        };
    for (int i = 0; i < absent; i++) {
      arguments.none(first + i);
    }
    int at = first + absent;
    arguments.real(at, layer.softcap().getOrElse(0.0));
    arguments.real(at + 1, layer.scale());
    boolean fa3 = absent == 4;
    if (fa3) {
      arguments.real(at + 2, 1.0);
      arguments.integer(at + 3, 0);
    } else {
      arguments.real(at + 2, NO_ROTATION_SCALE);
      arguments.real(at + 3, NO_ROTATION_THETA);
      if (prefill) {
        arguments.integer(at + 4, 0);
      }
    }
  }

  /** Room for descriptions, made from tensors of as many dimensions. */
  private void makeTensors(CacheTensors cache, TensorView ints, TensorView rows) {
    for (int index : new int[] {FLOATS, INTS, pageStart, pages, lastPageLen}) {
      tensors[index] = DlTensor.of(ints);
    }
    if (prefill) {
      tensors[queryStart] = DlTensor.of(ints);
    }
    tensors[QUERIES] = DlTensor.of(rows);
    tensors[out] = DlTensor.of(rows);
    tensors[lse] = DlTensor.of(rows);
    tensors[KEYS] = DlTensor.of(cache.keys());
    tensors[VALUES] = DlTensor.of(cache.values());
    for (int index = 0; index < tensors.length; index++) {
      if (tensors[index] != null) {
        arguments.tensor(index, tensors[index]);
      }
    }
  }

  Thread owner() {
    return owner;
  }

  /**
   * Runs one launch.
   *
   * @throws bifocal.core.error.BifocalException {@code NATIVE_FAILED} with the module's text
   */
  void call(
      DeviceStream stream,
      TensorView q,
      CacheTensors cache,
      Planned launch,
      TensorView output,
      Option<TensorView> sums) {
    tensors[FLOATS].describe(launch.floats());
    tensors[INTS].describe(launch.ints());
    arguments.object(PLAN, launch.plan().getFirst());
    tensors[QUERIES].describeRows(q, launch.firstRow(), launch.rows());
    tensors[KEYS].describe(cache.keys());
    tensors[VALUES].describe(cache.values());
    if (prefill) {
      tensors[queryStart].describe(launch.queryStart());
      arguments.integer(mask, launch.mask());
    }
    tensors[pageStart].describe(launch.pageStart());
    tensors[pages].describe(launch.pages());
    tensors[lastPageLen].describe(launch.lastPageLen());
    tensors[out].describeRows(output, launch.firstRow(), launch.rows());
    if (sums.isDefined()) {
      tensors[lse].describeRows(sums.get(), launch.firstRow(), launch.rows());
      arguments.tensor(lse, tensors[lse]);
    } else {
      arguments.none(lse);
    }
    try {
      run.call(arguments, stream);
    } finally {
      arguments.none(PLAN);
    }
  }
}

package bifocal.cuda.flashinfer;

import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.flashinfer.FlashInferStep.Single;
import bifocal.tvm.Arguments;
import bifocal.tvm.DeviceStream;
import bifocal.tvm.DlTensor;
import bifocal.tvm.ModuleFunction;

/**
 * Calls of XQA for one layer. What a layer fixes is set once; a call sets tensors and numbers, and
 * allocates nothing. It belongs to the thread that made it, which runs steps.
 *
 * <p>The kernel multiplies its scale of queries by the one that is usual for the head size; rows of
 * q and of the output are those of the requests, in their order and without gaps.
 */
final class XqaCall {
  private static final int PROGRAMS = 1;
  private static final int KV_HEADS = 2;
  private static final int WINDOW = 3;
  private static final int QUERY_SCALE = 4;
  private static final int OUTPUT = 6;
  private static final int OUTPUT_SCALE = 7;
  private static final int QUERIES = 8;
  private static final int KEYS = 10;
  private static final int VALUES = 11;
  private static final int PAGES = 14;
  private static final int MOST_KEYS = 15;
  private static final int NUMBERS_OF_KEYS = 16;
  private static final int REQUESTS = 17;
  private static final int CACHE_SCALE = 18;
  private static final int QUERIES_PER_REQUEST = 20;
  private static final int COUNTERS = 23;
  private static final int PARTIALS = 24;

  /** Scales of queries and caches on the device, sinks, and what is for drafts. */
  private static final int[] ABSENT = {5, 9, 12, 13, 19, 21, 22};

  /** Kernels of 8-bit caches, and launches before the one ahead has ended. */
  private static final int[] OFF = {0, 25};

  private final ModuleFunction run;
  private final Arguments arguments;
  private final Thread owner = Thread.currentThread();
  private final DlTensor[] tensors;

  XqaCall(
      LoadedModule module,
      AttentionLayerSpec.Dense layer,
      int programs,
      CacheTensors cache,
      Single first,
      TensorView rows) {
    this.run = module.function(ModuleSignatures.XQA);
    int count =
        ModuleSignatures.of(module.entry().key())
            .get(ModuleSignatures.XQA)
            .get()
            .parameters()
            .length();
    this.arguments = module.runtime().arguments(count);
    this.tensors = new DlTensor[count];
    for (int index : ABSENT) {
      arguments.none(index);
    }
    for (int index : OFF) {
      arguments.bool(index, false);
    }
    arguments.integer(PROGRAMS, programs);
    arguments.integer(KV_HEADS, layer.numKvHeads());
    arguments.integer(WINDOW, layer.mask().leftWindow() + 1L);
    arguments.real(QUERY_SCALE, layer.scale() * Math.sqrt(layer.headSize()));
    arguments.real(OUTPUT_SCALE, 1);
    arguments.real(CACHE_SCALE, 1);
    arguments.integer(QUERIES_PER_REQUEST, 1);
    describe(OUTPUT, rows);
    describe(QUERIES, rows);
    describe(KEYS, cache.tokenKeys());
    describe(VALUES, cache.tokenValues());
    describe(PAGES, first.pages());
    describe(NUMBERS_OF_KEYS, first.keys());
    describe(COUNTERS, first.counters());
    describe(PARTIALS, first.partials());
  }

  private void describe(int index, TensorView view) {
    tensors[index] = DlTensor.of(view);
    arguments.tensor(index, tensors[index]);
  }

  Thread owner() {
    return owner;
  }

  /**
   * Runs one launch.
   *
   * @param rows rows of q that are computed, from the launch's first on
   * @param output where they go
   * @param firstOut where the first goes
   * @throws bifocal.core.error.BifocalException {@code NATIVE_FAILED} with the module's text,
   *     {@code SHAPE_MISMATCH} for rows that q does not have
   */
  void call(
      DeviceStream stream,
      TensorView q,
      CacheTensors cache,
      Single launch,
      int rows,
      TensorView output,
      int firstOut) {
    tensors[QUERIES].describeRows(q, launch.firstRow(), rows);
    tensors[OUTPUT].describeRows(output, firstOut, rows);
    tensors[KEYS].describe(cache.tokenKeys());
    tensors[VALUES].describe(cache.tokenValues());
    tensors[PAGES].describe(launch.pages());
    tensors[NUMBERS_OF_KEYS].describe(launch.keys());
    tensors[COUNTERS].describe(launch.counters());
    tensors[PARTIALS].describe(launch.partials());
    arguments.integer(MOST_KEYS, launch.mostKeys());
    arguments.integer(REQUESTS, rows);
    run.call(arguments, stream);
  }
}

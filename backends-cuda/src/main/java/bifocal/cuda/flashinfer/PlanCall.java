package bifocal.cuda.flashinfer;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.tvm.Any;
import bifocal.tvm.Arguments;
import bifocal.tvm.DeviceStream;
import bifocal.tvm.DlTensor;
import bifocal.tvm.ModuleFunction;
import bifocal.tvm.ObjectReference;
import bifocal.tvm.OpaqueObject;
import io.vavr.collection.Seq;

/**
 * Calls of one module's {@code plan} for one layer group. It belongs to the thread that made it,
 * which runs steps.
 */
final class PlanCall {
  private static final int FLOATS = 0;
  private static final int INTS = 1;
  private static final int PINNED = 2;

  private final LoadedModule module;
  private final AttentionLayerSpec.Dense layer;
  private final KvCacheSpec cache;
  private final Thread owner = Thread.currentThread();
  private final ModuleFunction plan;
  private final Arguments arguments;
  private final DlTensor[] tensors;

  /**
   * What a plan is made of.
   *
   * @param floats memory for partial outputs, on the device
   * @param ints where the plan goes on the device
   * @param pinned where it is put together
   * @param queryStart first row of each entry and the end, on the host
   * @param pageStart first page of each entry and the end, on the host
   * @param keys keys of each entry, on the host
   * @param rows rows of all entries
   * @param entries how many there are
   * @param graph whether the plan may be changed under a captured graph
   * @param divisible whether keys may be divided among programs
   * @param causal whether queries see no later keys
   */
  record Inputs(
      TensorView floats,
      TensorView ints,
      TensorView pinned,
      TensorView queryStart,
      TensorView pageStart,
      TensorView keys,
      int rows,
      int entries,
      boolean graph,
      boolean divisible,
      boolean causal) {}

  /**
   * A plan.
   *
   * @param object as the module's run takes it
   * @param numbers the same in Java
   */
  record Plan(ObjectReference object, long[] numbers) {}

  PlanCall(LoadedModule module, AttentionLayerSpec.Dense layer, KvCacheSpec cache) {
    this.module = module;
    this.layer = layer;
    this.cache = cache;
    this.plan = module.function(ModuleSignatures.PLAN);
    this.arguments =
        module
            .runtime()
            .arguments(
                ModuleSignatures.of(module.entry().key())
                    .get(ModuleSignatures.PLAN)
                    .get()
                    .parameters()
                    .length());
    this.tensors = new DlTensor[arguments.count()];
  }

  Thread owner() {
    return owner;
  }

  /**
   * Plans; the module puts a copy of the plan into the stream.
   *
   * @throws BifocalException {@code NATIVE_FAILED} with the module's text
   */
  Plan call(DeviceStream stream, Inputs in) {
    tensor(FLOATS, in.floats());
    tensor(INTS, in.ints());
    tensor(PINNED, in.pinned());
    switch (module.entry().key()) {
      case ModuleKey.Decode decode -> decode(in);
      case ModuleKey.Prefill prefill -> prefill(prefill, in);
      case ModuleKey.Xqa xqa -> throw new IllegalStateException("XQA plans nothing");
    }
    plan.call(arguments, stream);
    ObjectReference object = arguments.takeResult();
    try {
      return new Plan(object, numbers(object));
    } catch (RuntimeException failure) {
      object.close();
      throw failure;
    }
  }

  private void decode(Inputs in) {
    tensor(3, in.pageStart());
    arguments.integer(4, in.entries());
    sizes(5);
    arguments.bool(8, in.graph());
    arguments.integer(9, layer.mask().leftWindow());
    arguments.real(10, layer.softcap().getOrElse(0.0));
    arguments.integer(11, layer.headSize());
    arguments.integer(12, layer.headSize());
    TensorView nothing =
        TensorView.of(in.ints().data().asSlice(0, 0), layer.dtype(), in.ints().device(), 0);
    tensor(13, nothing);
    tensor(14, nothing);
  }

  private void prefill(ModuleKey.Prefill key, Inputs in) {
    tensor(3, in.queryStart());
    tensor(4, in.pageStart());
    tensor(5, in.keys());
    arguments.integer(6, in.rows());
    arguments.integer(7, in.entries());
    sizes(8);
    arguments.bool(11, in.graph());
    arguments.integer(12, layer.headSize());
    arguments.integer(13, layer.headSize());
    arguments.bool(14, in.causal());
    arguments.integer(15, layer.mask().leftWindow());
    if (key.engine() == ModuleKey.Engine.FA2) {
      arguments.integer(16, -1);
      arguments.bool(17, !in.divisible());
      arguments.integer(18, 0);
      arguments.integer(19, 0);
      arguments.bool(20, false);
    }
  }

  /** Heads, and tokens of a page. */
  private void sizes(int at) {
    arguments.integer(at, layer.numHeads());
    arguments.integer(at + 1, layer.numKvHeads());
    arguments.integer(at + 2, cache.blockSize());
  }

  private void tensor(int index, TensorView view) {
    if (tensors[index] == null) {
      tensors[index] = DlTensor.of(view);
    } else {
      tensors[index].describe(view);
    }
    arguments.tensor(index, tensors[index]);
  }

  private long[] numbers(ObjectReference object) {
    if (object instanceof OpaqueObject opaque && opaque.value() instanceof Any.Array array) {
      Seq<Any> elements = array.elements();
      long[] numbers = new long[elements.length()];
      int at = 0;
      for (Any element : elements) {
        numbers[at++] =
            switch (element) {
              case Any.Int(long number) -> number;
              case Any.Bool(boolean truth) -> truth ? 1 : 0;
              default -> throw malformed(element);
            };
      }
      return numbers;
    }
    throw malformed(object);
  }

  private BifocalException malformed(Object seen) {
    return BifocalException.of(
        ErrorCode.MALFORMED_INPUT,
        "plan of " + module.entry().key().label(),
        seen,
        "an array of integers");
  }
}

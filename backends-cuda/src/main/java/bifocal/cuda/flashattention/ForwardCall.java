package bifocal.cuda.flashattention;

import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.TensorView;
import bifocal.cuda.flashattention.FlashAttentionStep.Call;
import bifocal.tvm.Arguments;
import bifocal.tvm.DeviceStream;
import bifocal.tvm.DlTensor;
import bifocal.tvm.ModuleFunction;

/**
 * Calls of one forward for one layer. What a layer fixes is set once; a call sets tensors, and
 * allocates nothing. It belongs to the thread that made it, which runs steps.
 */
final class ForwardCall {
  private static final int QUERIES = 0;
  private static final int KEYS = 1;
  private static final int VALUES = 2;
  private static final int OUT = 3;
  private static final int SUMS = 4;
  private static final int SCALE = 5;
  private static final int STARTS = 6;
  private static final int USED = 7;
  private static final int LENGTHS = 8;
  private static final int BLOCKS = 9;
  private static final int LEFT = 10;
  private static final int RIGHT = 11;

  private final ModuleFunction forward;
  private final Arguments arguments;
  private final Thread owner = Thread.currentThread();
  private final boolean bounds;
  private final DlTensor queries;
  private final DlTensor keys;
  private final DlTensor values;
  private final DlTensor out;
  private final DlTensor sums;
  private final DlTensor starts;
  private final DlTensor used;
  private final DlTensor lengths;
  private final DlTensor blocks;

  /** Room for descriptions is made from tensors of as many dimensions. */
  ForwardCall(
      ModuleFunction forward,
      AttentionLayerSpec.Dense layer,
      Call like,
      CacheSides cache,
      TensorView rows) {
    this.forward = forward;
    this.bounds = like.key().sight() == ForwardKey.Sight.BOUNDS;
    this.arguments = forward.runtime().arguments(bounds ? RIGHT + 1 : BLOCKS + 1);
    this.queries = lend(QUERIES, rows);
    this.keys = lend(KEYS, cache.keys());
    this.values = lend(VALUES, cache.values());
    this.out = lend(OUT, rows);
    this.sums = lend(SUMS, like.blocks());
    this.starts = lend(STARTS, like.starts());
    this.used = lend(USED, like.used());
    this.lengths = lend(LENGTHS, like.keys());
    this.blocks = lend(BLOCKS, like.blocks());
    arguments.real(SCALE, layer.scale());
  }

  private DlTensor lend(int index, TensorView like) {
    DlTensor tensor = DlTensor.of(like);
    arguments.tensor(index, tensor);
    return tensor;
  }

  Thread owner() {
    return owner;
  }

  /**
   * Runs a call.
   *
   * @throws bifocal.core.error.BifocalException {@code NATIVE_FAILED} with the library's text
   */
  void run(
      DeviceStream stream,
      Call call,
      int tokens,
      TensorView q,
      CacheSides cache,
      TensorView output,
      TensorView logSumExps) {
    queries.describeRows(q, 0, tokens);
    keys.describe(cache.keys());
    values.describe(cache.values());
    out.describeRows(output, 0, tokens);
    sums.describeRows(logSumExps, 0, tokens);
    starts.describe(call.starts());
    used.describe(call.used());
    lengths.describe(call.keys());
    blocks.describe(call.blocks());
    if (bounds) {
      arguments.integer(LEFT, call.left());
      arguments.integer(RIGHT, call.right());
    }
    forward.call(arguments, stream);
  }
}

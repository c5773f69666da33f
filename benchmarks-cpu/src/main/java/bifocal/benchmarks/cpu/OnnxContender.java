package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.Scene.Contiguous;
import bifocal.benchmarks.cpu.ffi.OnnxRuntime;
import bifocal.benchmarks.cpu.ffi.OnnxRuntime.Element;
import bifocal.core.tensor.DType;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * ONNX Runtime's grouped-query attention. Past and present keys are one buffer, so that nothing is
 * copied but the new tokens.
 */
final class OnnxContender implements Contender {
  private final OnnxRuntime onnx;
  private final Arena arena = Arena.ofShared();
  private final MemorySegment out;
  private final long session;
  private final long[] tensors;
  private final MemorySegment inputNames;
  private final MemorySegment inputs;
  private final MemorySegment outputNames;
  private final MemorySegment outputs;

  /** Whether it can do a work: floats, and requests of one shape, all prompts or all decodes. */
  static boolean serves(Work work) {
    int queries = work.requests().head().queryLen();
    return work.dtype() == DType.FP32
        && work.uniform()
        && work.mask().leftWindow() < 0
        && work.requests().forAll(r -> r.queryLen() == queries && r.images().length == 0)
        && (queries == 1 || (queries == work.longest() && queries <= Scene.PERIOD));
  }

  OnnxContender(OnnxRuntime onnx, Scene scene, int threads) {
    this.onnx = onnx;
    Work work = scene.work();
    long batch = work.requests().size();
    long queries = work.requests().head().queryLen();
    long length = work.longest();
    long d = work.headSize();
    Contiguous past = scene.contiguous();
    this.out = arena.allocate(scene.q().data().byteSize(), 64);
    this.session = onnx.session(AttentionModel.bytes(), threads);
    long[] cache = {batch, Work.KV_HEADS, length, d};
    long[] added = {batch, queries, Work.KV_HEADS * d};
    long[] rows = {batch, queries, Work.HEADS * d};
    MemorySegment lengths = arena.allocate(batch * Integer.BYTES, 64);
    for (long i = 0; i < batch; i++) {
      lengths.setAtIndex(ValueLayout.JAVA_INT, i, (int) length - 1);
    }
    MemorySegment total = arena.allocateFrom(ValueLayout.JAVA_INT, (int) length);
    this.tensors =
        new long[] {
          onnx.tensor(scene.q().data(), Element.FLOAT, rows),
          onnx.tensor(added(scene, scene.keyValues(Scene.PERIOD).k().data()), Element.FLOAT, added),
          onnx.tensor(added(scene, scene.keyValues(Scene.PERIOD).v().data()), Element.FLOAT, added),
          onnx.tensor(past.k(), Element.FLOAT, cache),
          onnx.tensor(past.v(), Element.FLOAT, cache),
          onnx.tensor(lengths, Element.INT32, batch),
          onnx.tensor(total, Element.INT32),
          onnx.tensor(out, Element.FLOAT, rows),
          onnx.tensor(past.k(), Element.FLOAT, cache),
          onnx.tensor(past.v(), Element.FLOAT, cache),
        };
    this.inputNames = names(AttentionModel.INPUTS);
    this.inputs = arena.allocateFrom(ValueLayout.JAVA_LONG, Arrays.copyOfRange(tensors, 0, 7));
    this.outputNames = names(AttentionModel.OUTPUTS);
    this.outputs = arena.allocateFrom(ValueLayout.JAVA_LONG, Arrays.copyOfRange(tensors, 7, 10));
  }

  /** The keys or values of the query tokens, of all requests. */
  private MemorySegment added(Scene scene, MemorySegment byToken) {
    Work work = scene.work();
    int queries = work.requests().head().queryLen();
    long rowBytes = (long) Work.KV_HEADS * work.headSize() * Float.BYTES;
    MemorySegment added = arena.allocate(work.queryTokens() * rowBytes, 64);
    for (int token = 0; token < work.queryTokens(); token++) {
      long position = (long) work.longest() - queries + token % queries;
      MemorySegment.copy(
          byToken, position % Scene.PERIOD * rowBytes, added, token * rowBytes, rowBytes);
    }
    return added;
  }

  private MemorySegment names(String... names) {
    MemorySegment pointers = arena.allocate(ValueLayout.ADDRESS, names.length);
    for (int i = 0; i < names.length; i++) {
      pointers.setAtIndex(ValueLayout.ADDRESS, i, arena.allocateFrom(names[i]));
    }
    return pointers;
  }

  @Override
  public String name() {
    return "onnxruntime";
  }

  @Override
  public void run() {
    onnx.run(session, inputNames, inputs, outputNames, outputs);
  }

  @Override
  public void read(int token, int head, float[] values) {
    long at = ((long) token * Work.HEADS + head) * values.length;
    MemorySegment.copy(out, ValueLayout.JAVA_FLOAT, at * Float.BYTES, values, 0, values.length);
  }

  @Override
  public void close() {
    Arrays.stream(tensors).forEach(onnx::releaseTensor);
    onnx.releaseSession(session);
    arena.close();
  }
}

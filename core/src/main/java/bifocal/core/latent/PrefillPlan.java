package bifocal.core.latent;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.NarrowFloats;
import bifocal.core.tensor.TensorView;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.ValueLayout;

/**
 * How the prefills of one step read their earlier context.
 *
 * @param chunks the context, cut to the workspace
 * @param withoutContext query tokens of requests that have none
 */
public record PrefillPlan(Seq<ContextChunk> chunks, Seq<Rows> withoutContext) {
  private static final ValueLayout.OfFloat FLOAT = ValueLayout.JAVA_FLOAT_UNALIGNED;

  /**
   * Query tokens of a step.
   *
   * @param first first of them
   * @param end the one behind the last
   */
  public record Rows(int first, int end) {}

  static Seq<Rows> withoutContext(Seq<Integer> contexts, Seq<Integer> queryLens) {
    Seq<Rows> rows = Vector.empty();
    int first = 0;
    for (int request = 0; request < contexts.size(); request++) {
      int end = first + queryLens.get(request);
      if (contexts.get(request) == 0 && end > first) {
        rows = rows.append(new Rows(first, end));
      }
      first = end;
    }
    return rows;
  }

  /**
   * Makes attention over the earlier context defined for queries that have none: output 0,
   * log-sum-exp minus infinity. No chunk covers them, so whatever was there before would stay.
   *
   * @param out {@code [queries, heads, size]}, fp32, fp16 or bf16, in host memory
   * @param lse fp32 {@code [queries, heads]}, in host memory
   * @throws BifocalException {@code SHAPE_MISMATCH}, {@code DTYPE_MISMATCH} or {@code
   *     DEVICE_MISMATCH}
   */
  public void clearWithoutContext(TensorView out, TensorView lse) {
    out.require("output over the context", out.dtype(), Device.HOST, -1, -1, -1);
    lse.require("log-sum-exp over the context", DType.FP32, Device.HOST, out.size(0), out.size(1));
    for (Rows rows : withoutContext) {
      clear(out.rows(rows.first(), rows.end()), lse.rows(rows.first(), rows.end()));
    }
  }

  private static void clear(TensorView out, TensorView lse) {
    for (long query = 0; query < out.size(0); query++) {
      for (long head = 0; head < out.size(1); head++) {
        for (long d = 0; d < out.size(2); d++) {
          long at = query * out.stride(0) + head * out.stride(1) + d * out.stride(2);
          NarrowFloats.store(out.data(), at * out.dtype().bytes(), out.dtype(), 0);
        }
        long at = query * lse.stride(0) + head * lse.stride(1);
        lse.data().set(FLOAT, at * Float.BYTES, Float.NEGATIVE_INFINITY);
      }
    }
  }
}

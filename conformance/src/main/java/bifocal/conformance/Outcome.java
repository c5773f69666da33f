package bifocal.conformance;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.conformance.ValueSource.Kind;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.tensor.TensorView;
import bifocal.reference.Agreement;
import bifocal.reference.HostTensor;
import bifocal.reference.KeyValues;
import bifocal.reference.QueryHead;
import bifocal.reference.ReferenceAttention;
import bifocal.reference.ReferenceRow;
import bifocal.reference.Tolerance;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** What a step wrote, on the host. */
final class Outcome {
  /** Multiplications of the reference above which it computes only a part of the outputs. */
  private static final long MOST_WORK = 40_000_000;

  private static final int SAMPLED = 48;
  private static final float LN_2 = (float) Math.log(2);

  private final Step<?> step;
  private final TensorView out;
  private final Option<TensorView> lse;
  private final boolean lseBase2;

  Outcome(Step<?> step, TensorView out, Option<TensorView> lse, boolean lseBase2) {
    this.step = step;
    this.out = out;
    this.lse = lse;
    this.lseBase2 = lseBase2;
  }

  /** Requires that live rows agree with the reference and that other rows are as they were. */
  void requireRight() {
    requireRight(Tolerance.of(layer().dtype()));
  }

  /** Requires that live rows agree within some bounds and that other rows are as they were. */
  void requireRight(Tolerance tolerance) {
    Agreement agreement = agreement();
    assertThat(agreement.within(tolerance))
        .as(
            "%s%nbatch %s%n%s%nwanted at most %.1e and %.1e",
            step.rig().setup(), step.host().plan(), agreement, tolerance.out(), tolerance.lse())
        .isTrue();
    requireOthersUntouched();
  }

  /** Requires that the output of these two steps is the same, bit for bit. */
  void requireSameBitsAs(Outcome other) {
    assertThat(out.data().mismatch(other.out.data()))
        .as(
            "first differing byte of the output%n%s%nbatch %s",
            step.rig().setup(), step.host().plan())
        .isEqualTo(-1);
    for (TensorView mine : lse) {
      assertThat(mine.data().mismatch(other.lse.get().data()))
          .as("first differing byte of the log-sum-exp, %s", step.rig().setup())
          .isEqualTo(-1);
    }
  }

  /** Requires that a row of this output is the same as one of another, bit for bit. */
  void requireSameRow(int row, Outcome other, int otherRow) {
    for (int head = 0; head < out.size(1); head++) {
      for (int d = 0; d < out.size(2); d++) {
        assertThat(out(row, head, d))
            .as("row %d, head %d, element %d, %s", row, head, d, step.rig().setup())
            .isEqualTo(other.out(otherRow, head, d));
      }
    }
  }

  /** Requires that no row was written at all. */
  void requireUntouched() {
    for (int row = 0; row < step.host().rows(); row++) {
      requirePoison(row);
    }
  }

  /** One number of the output. */
  float out(int row, int head, int d) {
    return HostTensor.over(out).at(row, head, d);
  }

  /** One log-sum-exp, base e; absent when the backend returns none. */
  Option<Float> lse(int row, int head) {
    return lse.map(tensor -> HostTensor.over(naturalLse(tensor)).at(row, head));
  }

  Agreement agreement() {
    return Agreement.of(expected(), new AttentionOutput(out, lse.map(this::naturalLse)));
  }

  private TensorView naturalLse(TensorView tensor) {
    if (!lseBase2) {
      return tensor;
    }
    byte[] copy = tensor.data().toArray(ValueLayout.JAVA_BYTE);
    TensorView natural =
        TensorView.ofHost(MemorySegment.ofArray(copy), tensor.dtype(), tensor.shape());
    HostTensor numbers = HostTensor.over(natural);
    for (long row = 0; row < natural.size(0); row++) {
      for (long head = 0; head < natural.size(1); head++) {
        numbers.put(numbers.at(row, head) * LN_2, row, head);
      }
    }
    return natural;
  }

  private Dense layer() {
    return step.rig().layer();
  }

  private Seq<ReferenceRow> expected() {
    ReferenceAttention attention = ReferenceAttention.of(layer(), step.rig().hostParameters());
    TensorView q = step.rig().tensors().hostRows(Kind.QUERY, step.host());
    KeyValues kv =
        KeyValues.stored(
            new ExpectedKeyValues(step),
            layer().dtype(),
            step.rig().spec(),
            step.rig().blocks().scratch());
    CommonAttentionMetadata batch = step.batch();
    return work(batch) <= MOST_WORK
        ? attention.all(q, kv, batch)
        : attention.chosen(q, kv, batch, sample(batch));
  }

  private long work(CommonAttentionMetadata batch) {
    long pairs = 0;
    for (int r = 0; r < batch.live(); r++) {
      pairs += (long) batch.queryLen(r) * batch.seqLen(r);
    }
    return pairs * layer().numHeads() * (layer().headSize() + layer().headSizeV());
  }

  /** First and last query of each request, then random ones; a random head for each. */
  private Seq<QueryHead> sample(CommonAttentionMetadata batch) {
    Random random = new Random(step.rig().setup().seed());
    List<QueryHead> pairs = new ArrayList<>();
    int each = Math.max(2, SAMPLED / Math.max(1, batch.live()));
    for (int r = 0; r < batch.live(); r++) {
      int queries = batch.queryLen(r);
      for (int i = 0; i < Math.min(each, queries); i++) {
        int at = i == 0 ? 0 : i == 1 ? queries - 1 : random.nextInt(queries);
        pairs.add(new QueryHead(batch.queryStart(r) + at, random.nextInt(layer().numHeads())));
      }
    }
    return Vector.ofAll(pairs);
  }

  private void requireOthersUntouched() {
    boolean[] live = new boolean[step.host().rows()];
    CommonAttentionMetadata batch = step.batch();
    for (int r = 0; r < batch.live(); r++) {
      for (int i = 0; i < batch.queryLen(r); i++) {
        live[batch.queryStart(r) + i] = true;
      }
    }
    for (int row = 0; row < live.length; row++) {
      if (!live[row]) {
        requirePoison(row);
      }
    }
  }

  private void requirePoison(int row) {
    requirePoison("output", out, row);
    lse.forEach(tensor -> requirePoison("log-sum-exp", tensor, row));
  }

  private void requirePoison(String name, TensorView tensor, int row) {
    long bytes = tensor.stride(0) * tensor.dtype().bytes();
    for (long at = row * bytes; at < (row + 1) * bytes; at++) {
      assertThat(Tensors.isPoison(tensor.data().get(ValueLayout.JAVA_BYTE, at)))
          .as(
              "row %d of the %s belongs to no request and was written, batch %s",
              row, name, step.host().plan())
          .isTrue();
    }
  }
}

package bifocal.examples.engine;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.reference.HostTensor;
import java.lang.foreign.Arena;
import java.util.stream.IntStream;

/** In place of weights: numbers that follow from a token, its position, and what they are for. */
record ToyModel(int headSize, int sharedTokens) {
  /** Queries (kind 0), keys (1) or values (2) of a step's new tokens, or of all tokens so far. */
  TensorView rows(Arena arena, CommonAttentionMetadata batch, boolean all, int kind, int heads) {
    int count = all ? IntStream.range(0, batch.live()).map(batch::seqLen).sum() : batch.tokens();
    var memory = arena.allocate(2L * count * heads * headSize);
    var rows = TensorView.ofHost(memory, DType.BF16, count, heads, headSize);
    var numbers = HostTensor.over(TensorView.ofHost(memory, DType.BF16, rows.elements()));
    int next = 0;
    for (int session = 0; session < batch.live(); session++) {
      for (int at = all ? 0 : batch.firstPosition(session); at < batch.seqLen(session); at++) {
        for (int n = 0; n < heads * headSize; n++) {
          int mixed = (token(session, at) * 131 + at) * 131 + kind * 4099 + n;
          numbers.put(((mixed * 0x9E3779B1) >> 24) / 128f, next++); // exact in bf16
        }
      }
    }
    return rows;
  }

  int[] prompt(int session, int length) {
    return IntStream.range(0, length).map(at -> token(session, at)).toArray();
  }

  private int token(int session, int position) {
    return position < sharedTokens ? position : position + 1000 * (1 + session);
  }
}

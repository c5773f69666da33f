package bifocal.examples.engine;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.reference.HostTensor;
import bifocal.reference.KeyValues;
import java.lang.foreign.Arena;

/** In place of weights: numbers that follow from a token, its position, and what they are for. */
record ToyModel(int headSize, int sharedTokens) implements KeyValues {
  /** Queries (0), keys (1), values (2) or room for outputs (3) of a step's tokens. */
  TensorView rows(Arena arena, CommonAttentionMetadata batch, int kind, int heads) {
    int width = heads * headSize;
    var memory = arena.allocate(2L * batch.tokens() * width);
    var numbers = HostTensor.over(TensorView.ofHost(memory, DType.BF16, batch.tokens(), width));
    for (int session = 0; session < batch.live(); session++) {
      for (int i = 0; i < batch.queryLen(session); i++) {
        int position = batch.firstPosition(session) + i;
        for (int n = 0; n < width; n++) {
          numbers.put(number(kind, session, position, n), batch.queryStart(session) + i, n);
        }
      }
    }
    return TensorView.ofHost(memory, DType.BF16, batch.tokens(), heads, headSize);
  }

  private float number(int kind, int session, int position, int n) {
    int token = position < sharedTokens ? position : position + 1000 * (1 + session);
    return ((((token * 4 + kind) * 131 + n) * 0x9E3779B1) >> 24) / 128f; // exact in bf16
  }

  @Override
  public void readKey(int session, int position, int head, float[] key) {
    for (int d = 0; d < headSize; d++) {
      key[d] = number(1, session, position, head * headSize + d);
    }
  }

  @Override
  public void readValue(int session, int position, int head, float[] value) {
    for (int d = 0; d < headSize; d++) {
      value[d] = number(2, session, position, head * headSize + d);
    }
  }
}

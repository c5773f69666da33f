package bifocal.examples.cache;

import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.reference.HostTensor;
import bifocal.reference.KeyValues;
import java.lang.foreign.Arena;

/**
 * In place of a model: each number follows from the sequence, the position and what it is for. The
 * reference reads keys and values from here, not from the cache.
 *
 * @param names which sequence is in which row
 */
record Numbers(int[] names, int layer, int headSize) implements KeyValues {
  /** What a number is for. */
  enum Kind {
    QUERY,
    KEY,
    VALUE
  }

  /** Rows that hold nothing yet. */
  static TensorView empty(Arena arena, int rows, int heads, int headSize) {
    return TensorView.ofHost(
        arena.allocate(2L * rows * heads * headSize), DType.BF16, rows, heads, headSize);
  }

  /** Fills rows with the numbers of a row's tokens from a position on. */
  void fill(TensorView rows, Kind kind, int row, int firstPosition) {
    HostTensor numbers = HostTensor.over(rows);
    float[] head = new float[headSize];
    for (int i = 0; i < rows.size(0); i++) {
      for (int h = 0; h < rows.size(1); h++) {
        read(kind, row, firstPosition + i, h, head);
        for (int d = 0; d < headSize; d++) {
          numbers.put(head[d], i, h, d);
        }
      }
    }
  }

  @Override
  public void readKey(int row, int position, int kvHead, float[] key) {
    read(Kind.KEY, row, position, kvHead, key);
  }

  @Override
  public void readValue(int row, int position, int kvHead, float[] value) {
    read(Kind.VALUE, row, position, kvHead, value);
  }

  private void read(Kind kind, int row, int position, int head, float[] numbers) {
    int token = (names[row] * 4099 + position) * 8 + layer * 4 + kind.ordinal();
    for (int d = 0; d < headSize; d++) {
      int mixed = ((token * 64 + head) * 1031 + d) * 0x9E3779B1;
      numbers[d] = (mixed >> 24) / 128f; // exact in bf16
    }
  }
}

package bifocal.conformance;

import bifocal.conformance.ValueSource.Kind;
import bifocal.reference.KeyValues;

/** Keys and values of a step's requests, made anew from the source of numbers. */
record ExpectedKeyValues(Step<?> step) implements KeyValues {
  @Override
  public void readKey(int request, int position, int kvHead, float[] key) {
    fill(Kind.KEY, request, position, kvHead, key);
  }

  @Override
  public void readValue(int request, int position, int kvHead, float[] value) {
    fill(Kind.VALUE, request, position, kvHead, value);
  }

  private void fill(Kind kind, int request, int position, int head, float[] numbers) {
    Tensors tensors = step.rig().tensors();
    for (int d = 0; d < numbers.length; d++) {
      numbers[d] = tensors.number(kind, step.sequence(request), position, head, d);
    }
  }
}

package bifocal.core.latent;

import java.util.Arrays;

/**
 * Chosen keys of several tokens back to back, for kernels that read pages of one token through a
 * ragged list.
 *
 * @param starts {@code [tokens + 1]}: where the keys of each token begin, and where the last end
 * @param slots slots of the keys
 */
public record RaggedKeys(int[] starts, long[] slots) {

  /** The keys that an indexer chose, without the entries that are no key. */
  public static RaggedKeys of(ChosenKeys chosen) {
    int tokens = chosen.slots().length / chosen.perToken();
    int[] starts = new int[tokens + 1];
    long[] slots = new long[chosen.slots().length];
    int next = 0;
    for (int i = 0; i < slots.length; i++) {
      if (chosen.slots()[i] != ChosenKeys.NONE) {
        slots[next++] = chosen.slots()[i];
      }
      starts[i / chosen.perToken() + 1] = next;
    }
    return new RaggedKeys(starts, Arrays.copyOf(slots, next));
  }
}

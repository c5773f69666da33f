package bifocal.core.error;

import io.vavr.control.Option;
import java.util.Locale;

/** Finds the known name that a misspelt one most likely meant, so that a refusal can say it. */
public final class NearestName {
  /** Longer names are compared by their beginning. */
  private static final int LONGEST = 64;

  private NearestName() {}

  /**
   * The known name with the fewest edits (a letter added, left out, replaced, or two neighbours
   * swapped) from the given one, in any letter case; of equally near ones the first.
   *
   * @return absent when no name is known
   */
  public static Option<String> of(String given, Iterable<String> known) {
    String wanted = folded(given);
    Option<String> nearest = Option.none();
    int fewest = Integer.MAX_VALUE;
    for (String name : known) {
      int edits = edits(wanted, folded(name));
      if (edits < fewest) {
        fewest = edits;
        nearest = Option.some(name);
      }
    }
    return nearest;
  }

  /** The advice {@code "the nearest known one is 'name'"}, empty when no name is known. */
  public static String advice(String given, Iterable<String> known) {
    return of(given, known).map(name -> "the nearest known one is '" + name + "'").getOrElse("");
  }

  private static String folded(String name) {
    String lower = name.toLowerCase(Locale.ROOT);
    return lower.substring(0, Math.min(lower.length(), LONGEST));
  }

  private static int edits(String a, String b) {
    int[][] edits = new int[a.length() + 1][b.length() + 1];
    for (int i = 0; i <= a.length(); i++) {
      for (int j = 0; j <= b.length(); j++) {
        edits[i][j] = i == 0 || j == 0 ? i + j : fewest(edits, a, b, i, j);
      }
    }
    return edits[a.length()][b.length()];
  }

  private static int fewest(int[][] edits, String a, String b, int i, int j) {
    boolean same = a.charAt(i - 1) == b.charAt(j - 1);
    int fewest = edits[i - 1][j - 1] + (same ? 0 : 1);
    fewest = Math.min(fewest, 1 + Math.min(edits[i - 1][j], edits[i][j - 1]));
    boolean swapped =
        i > 1 && j > 1 && a.charAt(i - 1) == b.charAt(j - 2) && a.charAt(i - 2) == b.charAt(j - 1);
    return swapped ? Math.min(fewest, 1 + edits[i - 2][j - 2]) : fewest;
  }
}

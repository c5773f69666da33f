package bifocal.core.error;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.Locale;

/** Finds the known name that a misspelt one most likely meant, so that a refusal can say it. */
public final class NearestName {
  /** Longer names are compared by their beginning. */
  private static final int LONGEST = 64;

  /** Who types part of a name leaves letters out, so that costs least. */
  private static final int LEFT_OUT = 1;

  private static final int SWAPPED = 1;
  private static final int TOO_MANY = 2;
  private static final int REPLACED = 3;

  private NearestName() {}

  /**
   * The known name that takes the least editing from the given one, in any letter case: letters
   * left out, too many, replaced, and neighbours swapped. Of equally near ones the first.
   *
   * @return absent when no name resembles the given one: of its letters, two in three are kept
   */
  public static Option<String> of(String given, Iterable<String> known) {
    String wanted = folded(given);
    Option<String> nearest = Option.none();
    int least = Integer.MAX_VALUE;
    for (String name : known) {
      String other = folded(name);
      int cost = cost(wanted, other);
      if (cost < least && resembles(wanted, other, cost)) {
        least = cost;
        nearest = Option.some(name);
      }
    }
    return nearest;
  }

  /** The advice {@code "the nearest known one is 'name'"}, empty when no name resembles it. */
  public static String advice(String given, Iterable<String> known) {
    return of(given, known).map(name -> "the nearest known one is '" + name + "'").getOrElse("");
  }

  /** The same advice; where no name resembles it, {@code "known are a, b"}. */
  public static String adviceElseAll(String given, Iterable<String> known) {
    return of(given, known).isDefined() ? advice(given, known) : all(known);
  }

  /** The same advice, and every known name. */
  public static String adviceAndAll(String given, Iterable<String> known) {
    return of(given, known).map(name -> advice(given, known) + "; ").getOrElse("") + all(known);
  }

  private static String all(Iterable<String> known) {
    Seq<String> names = Vector.ofAll(known);
    return names.isEmpty() ? "none is known" : "known are " + names.mkString(", ");
  }

  /**
   * Typing a name anew costs {@link #TOO_MANY} for each given letter and {@link #LEFT_OUT} for each
   * known one; each letter that is kept saves both. So many saved letters must make up for the
   * given ones.
   */
  private static boolean resembles(String given, String known, int cost) {
    return !given.isEmpty() && cost <= LEFT_OUT * known.length();
  }

  private static String folded(String name) {
    String lower = name.toLowerCase(Locale.ROOT);
    return lower.substring(0, Math.min(lower.length(), LONGEST));
  }

  private static int cost(String given, String known) {
    int[][] cost = new int[given.length() + 1][known.length() + 1];
    for (int i = 0; i <= given.length(); i++) {
      for (int j = 0; j <= known.length(); j++) {
        cost[i][j] =
            i == 0 || j == 0 ? TOO_MANY * i + LEFT_OUT * j : least(cost, given, known, i, j);
      }
    }
    return cost[given.length()][known.length()];
  }

  private static int least(int[][] cost, String given, String known, int i, int j) {
    boolean same = given.charAt(i - 1) == known.charAt(j - 1);
    int least = cost[i - 1][j - 1] + (same ? 0 : REPLACED);
    least = Math.min(least, cost[i - 1][j] + TOO_MANY);
    least = Math.min(least, cost[i][j - 1] + LEFT_OUT);
    boolean swapped =
        i > 1
            && j > 1
            && given.charAt(i - 1) == known.charAt(j - 2)
            && given.charAt(i - 2) == known.charAt(j - 1);
    return swapped ? Math.min(least, cost[i - 2][j - 2] + SWAPPED) : least;
  }
}

package bifocal.core.batch;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.Comparator;

/**
 * The order of a batch in which every layer group finds its decodes in front. It is made once, from
 * what all groups ask, and arranges each step's batch: requests with computed tokens and few
 * queries first, then long extends, then requests that have nothing computed.
 *
 * <p>Each wish makes a set of requests that must be a prefix of the batch, so all wishes can be met
 * at once exactly when their sets lie inside each other: smaller thresholds first, and sets without
 * short extends before sets with them.
 */
public final class DecodeFirstOrder {
  private final Seq<Wish> wishes;

  /**
   * What one layer group asks of the order.
   *
   * @param group how a refusal calls it
   * @param threshold queries up to which a request counts as a decode, at least 1
   * @param shortExtends whether a request that still works on its prompt, with as few queries,
   *     counts as a decode too
   */
  public record Wish(String group, int threshold, boolean shortExtends) {
    public Wish {
      if (threshold < 1) {
        throw BifocalException.of(
            ErrorCode.INVALID_PARAMETER,
            "decode threshold of group " + group,
            threshold,
            "at least 1");
      }
    }

    /** A group whose short extends run like decodes. */
    public static Wish of(String group, int threshold) {
      return new Wish(group, threshold, true);
    }

    private boolean within(Wish other) {
      return threshold <= other.threshold && (!shortExtends || other.shortExtends);
    }
  }

  private DecodeFirstOrder(Seq<Wish> wishes) {
    this.wishes = wishes;
  }

  /**
   * The order that meets every wish; without wishes a batch stays as it is.
   *
   * @throws BifocalException {@code INVALID_COMPOSITION}, naming two groups that no order satisfies
   */
  public static DecodeFirstOrder of(Seq<Wish> wishes) {
    Seq<Wish> nested =
        wishes
            .distinctBy(w -> w.threshold() + (w.shortExtends() ? "+" : ""))
            .sorted(Comparator.comparingInt(Wish::threshold).thenComparing(Wish::shortExtends))
            .toVector();
    for (int i = 1; i < nested.size(); i++) {
      Wish inner = nested.get(i - 1);
      Wish outer = nested.get(i);
      if (!inner.within(outer)) {
        throw BifocalException.of(
            ErrorCode.INVALID_COMPOSITION,
            "one order for groups " + inner.group() + " and " + outer.group(),
            "short extends of up to "
                + inner.threshold()
                + " queries are decodes of the first and not of the second",
            "wishes that lie inside each other");
      }
    }
    return new DecodeFirstOrder(nested);
  }

  /** The order for one threshold. */
  public static DecodeFirstOrder of(int threshold) {
    return of(Vector.of(Wish.of("batch", threshold)));
  }

  /** The smallest threshold asked for; absent when nobody cares. */
  public Option<Integer> smallestThreshold() {
    return wishes.headOption().map(Wish::threshold);
  }

  /**
   * Finds the new order of one batch. Only requests that stand among others of another kind are
   * moved, so the order inside a kind may change.
   *
   * @param scheduled queries of each request in this step
   * @param computed tokens of each request computed before this step
   * @param prompt prompt tokens of each request
   * @param order receives, for each new place, the present place of its request; its first so many
   *     entries are written
   * @return whether anything moved
   * @throws BifocalException {@code SHAPE_MISMATCH} when an array is shorter than {@code requests}
   */
  public boolean arrange(int[] scheduled, int[] computed, int[] prompt, int requests, int[] order) {
    requireLength("scheduled tokens", scheduled, requests);
    requireLength("computed tokens", computed, requests);
    requireLength("prompt lengths", prompt, requests);
    requireLength("order", order, requests);
    int[] kind = new int[requests];
    int[] end = new int[kinds() + 1];
    for (int r = 0; r < requests; r++) {
      order[r] = r;
      kind[r] = kind(scheduled[r], computed[r], prompt[r]);
      end[kind[r] + 1]++;
    }
    for (int k = 1; k < end.length; k++) {
      end[k] += end[k - 1];
    }
    return !wishes.isEmpty() && fill(order, kind, end);
  }

  /** Fills the places of displaced requests, front to back, kind by kind, each kind in order. */
  private static boolean fill(int[] order, int[] kind, int[] end) {
    int place = 0;
    boolean moved = false;
    for (int k = 0; k + 1 < end.length; k++) {
      for (int r = 0; r < kind.length; r++) {
        if (kind[r] == k && !stands(r, k, end)) {
          while (stands(place, kind[place], end)) {
            place++;
          }
          order[place] = r;
          place++;
          moved = true;
        }
      }
    }
    return moved;
  }

  private static boolean stands(int place, int kind, int[] end) {
    return end[kind] <= place && place < end[kind + 1];
  }

  private int kinds() {
    return 2 * wishes.size() + 2;
  }

  /** For each wish its decodes, then its short extends; then long extends; then prefills. */
  private int kind(int scheduled, int computed, int prompt) {
    if (computed <= 0) {
      return kinds() - 1;
    }
    boolean done = computed >= prompt;
    int shortestUnwanted = kinds() - 2;
    for (int i = 0; i < wishes.size(); i++) {
      Wish wish = wishes.get(i);
      if (scheduled <= wish.threshold()) {
        if (done) {
          return 2 * i;
        }
        if (wish.shortExtends()) {
          return 2 * i + 1;
        }
        shortestUnwanted = 2 * wishes.size() - 1;
      }
    }
    return shortestUnwanted;
  }

  private static void requireLength(String name, int[] array, int requests) {
    if (requests < 0 || array.length < requests) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, name, array.length, "at least " + requests);
    }
  }

  @Override
  public String toString() {
    return wishes.isEmpty()
        ? "any order"
        : "decodes first, up to " + wishes.map(Wish::threshold).mkString(", ") + " queries";
  }
}

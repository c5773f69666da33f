package bifocal.core.backend;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** Head sizes a backend can run; declaring nothing means supporting nothing. */
public record HeadSizes(Seq<Rule> rules) {
  /** Every size. */
  public static final HeadSizes ANY = multiplesOf(1, 1, Integer.MAX_VALUE);

  /** No size. */
  public static final HeadSizes NONE = new HeadSizes(Vector.empty());

  /**
   * Multiples of {@code base} from {@code least} to {@code most}; one exact size has both bounds
   * equal.
   */
  public record Rule(int base, int least, int most) {
    public Rule {
      if (base < 1 || least < 1 || most < least) {
        throw BifocalException.of(
            ErrorCode.INVALID_PARAMETER,
            "head size rule",
            "%" + base + " in " + least + ".." + most,
            "a positive base and ascending positive bounds");
      }
    }

    boolean accepts(int size) {
      return size >= least && size <= most && size % base == 0;
    }

    @Override
    public String toString() {
      if (least == most) {
        return Integer.toString(least);
      }
      if (base == 1 && least == 1 && most == Integer.MAX_VALUE) {
        return "Any";
      }
      String bounds = most == Integer.MAX_VALUE ? ">=" + least : least + ".." + most;
      return base == 1 ? bounds : "%" + base + " in " + bounds;
    }
  }

  /** Exactly these sizes. */
  public static HeadSizes exactly(Integer... sizes) {
    return new HeadSizes(Vector.of(sizes).map(size -> new Rule(1, size, size)));
  }

  /** Multiples of a base between bounds, both included. */
  public static HeadSizes multiplesOf(int base, int least, int most) {
    return new HeadSizes(Vector.of(new Rule(base, least, most)));
  }

  /** Whether a size runs. */
  public boolean accepts(int size) {
    for (Rule rule : rules) {
      if (rule.accepts(size)) {
        return true;
      }
    }
    return false;
  }

  /** Sizes of either. */
  public HeadSizes union(HeadSizes other) {
    return new HeadSizes(rules.appendAll(other.rules).distinct());
  }

  /** Sizes of both. */
  public HeadSizes intersect(HeadSizes other) {
    return new HeadSizes(rules.flatMap(a -> other.rules.flatMap(b -> meet(a, b))).distinct());
  }

  private static Seq<Rule> meet(Rule a, Rule b) {
    long base = lcm(a.base(), b.base());
    int least = Math.max(a.least(), b.least());
    int most = Math.min(a.most(), b.most());
    if (least > most || base > most) {
      return Vector.empty();
    }
    if (least == most) {
      return least % base == 0 ? Vector.of(new Rule(1, least, least)) : Vector.empty();
    }
    return Vector.of(new Rule((int) base, least, most));
  }

  private static long lcm(int a, int b) {
    int x = a;
    int y = b;
    while (y != 0) {
      int rest = x % y;
      x = y;
      y = rest;
    }
    return (long) (a / x) * b;
  }

  @Override
  public String toString() {
    return rules.isEmpty() ? "none" : rules.mkString(", ");
  }
}

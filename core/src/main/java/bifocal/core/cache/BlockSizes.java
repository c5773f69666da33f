package bifocal.core.cache;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * Block sizes a kernel can run: exact sizes and multiples. Declaring nothing means supporting
 * nothing.
 *
 * @param sizes in the order of preference
 */
public record BlockSizes(Seq<BlockSize> sizes) {
  /** Supports no size. */
  public static final BlockSizes NONE = new BlockSizes(Vector.empty());

  /** Supports every size. */
  public static final BlockSizes ANY = multiplesOf(1);

  /** One declared size. */
  public sealed interface BlockSize {
    /** Whether a kernel declared so can run blocks of exactly {@code size} tokens. */
    boolean accepts(int size);
  }

  /** Exactly this many tokens. */
  public record Exactly(int tokens) implements BlockSize {
    public Exactly {
      requirePositive(tokens);
    }

    @Override
    public boolean accepts(int size) {
      return size == tokens;
    }

    @Override
    public String toString() {
      return Integer.toString(tokens);
    }
  }

  /** Any multiple of this many tokens. */
  public record MultipleOf(int base) implements BlockSize {
    public MultipleOf {
      requirePositive(base);
    }

    @Override
    public boolean accepts(int size) {
      return size > 0 && size % base == 0;
    }

    @Override
    public String toString() {
      return "%" + base;
    }
  }

  /** Supports exactly these sizes. */
  public static BlockSizes exactly(Integer... tokens) {
    return new BlockSizes(Vector.of(tokens).map(Exactly::new));
  }

  /** Supports all multiples of {@code base}. */
  public static BlockSizes multiplesOf(int base) {
    return new BlockSizes(Vector.of(new MultipleOf(base)));
  }

  /** Whether a kernel block of exactly this size runs. */
  public boolean accepts(int size) {
    for (BlockSize declared : sizes) {
      if (declared.accepts(size)) {
        return true;
      }
    }
    return false;
  }

  /** Whether blocks of some size run that fill a page of the block table. */
  public boolean runsPagesOf(int page) {
    if (page < 1) {
      return false;
    }
    for (BlockSize size : sizes) {
      boolean fills =
          size instanceof Exactly exactly ? page % exactly.tokens() == 0 : size.accepts(page);
      if (fills) {
        return true;
      }
    }
    return false;
  }

  /** Whether no size runs. */
  public boolean isEmpty() {
    return sizes.isEmpty();
  }

  /** Sizes of either. */
  public BlockSizes union(BlockSizes other) {
    return equals(other) ? this : new BlockSizes(sizes.appendAll(other.sizes).distinct());
  }

  /**
   * Sizes that both run: equal exact sizes, exact sizes that are multiples of the other's base, and
   * the least common multiple of two bases, in this side's order.
   */
  public BlockSizes intersect(BlockSizes other) {
    if (equals(other)) {
      return this;
    }
    return new BlockSizes(
        sizes.flatMap(left -> other.sizes.flatMap(right -> meet(left, right))).distinct());
  }

  /**
   * The kernel block size for a cache page: the page itself when it runs, else the largest exact
   * size that divides it; absent when there is none or the page is not positive.
   *
   * @param page tokens per block of the block table
   */
  public Option<Integer> kernelBlockFor(int page) {
    if (page < 1) {
      return Option.none();
    }
    if (accepts(page)) {
      return Option.some(page);
    }
    return sizes
        .flatMap(
            size ->
                switch (size) {
                  case Exactly exactly -> Option.of(exactly.tokens());
                  case MultipleOf multiple -> Option.<Integer>none();
                })
        .filter(tokens -> page % tokens == 0)
        .max();
  }

  /**
   * The size to use when nobody asks for one: the default when it runs, else the smallest.
   *
   * @throws BifocalException {@code KV_INCOMPATIBLE} when no size runs
   */
  public int preferred(int defaultSize) {
    if (accepts(defaultSize)) {
      return defaultSize;
    }
    return sizes
        .map(
            size ->
                switch (size) {
                  case Exactly exactly -> exactly.tokens();
                  case MultipleOf multiple -> multiple.base();
                })
        .min()
        .getOrElseThrow(
            () -> BifocalException.of(ErrorCode.KV_INCOMPATIBLE, "no kernel block size runs"));
  }

  private static void requirePositive(int tokens) {
    if (tokens < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "kernel block size", tokens, "at least 1");
    }
  }

  private static Option<BlockSize> meet(BlockSize left, BlockSize right) {
    return switch (left) {
      case Exactly l -> right.accepts(l.tokens()) ? Option.some(l) : Option.none();
      case MultipleOf l ->
          switch (right) {
            case Exactly r -> l.accepts(r.tokens()) ? Option.some(r) : Option.none();
            case MultipleOf r -> multipleOfBoth(l.base(), r.base());
          };
    };
  }

  /** A least common multiple beyond 32 bits is a size that nobody can have. */
  private static Option<BlockSize> multipleOfBoth(int a, int b) {
    int x = a;
    int y = b;
    while (y != 0) {
      int rest = x % y;
      x = y;
      y = rest;
    }
    long multiple = (long) (a / x) * b;
    return Option.when(multiple <= Integer.MAX_VALUE, () -> new MultipleOf((int) multiple));
  }

  @Override
  public String toString() {
    return sizes.isEmpty() ? "none" : sizes.mkString(", ");
  }
}

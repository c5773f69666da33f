package bifocal.conformance;

/**
 * The numbers of queries, keys and values, as a function of where they stand. Because nothing but
 * the place decides, a token has the same numbers in whatever batch or chunk it is computed.
 */
@FunctionalInterface
public interface ValueSource {
  /** What a number belongs to. */
  enum Kind {
    QUERY,
    KEY,
    VALUE
  }

  /**
   * One number, before it is rounded to the layer's type.
   *
   * @param sequence number of the sequence
   * @param position absolute position of its token; negative where queries outnumber keys
   * @param head query or KV head
   * @param d element of the head
   */
  float at(Kind kind, int sequence, int position, int head, int d);

  /** Numbers of about unit variance that a seed decides. */
  static ValueSource seeded(long seed) {
    return (kind, sequence, position, head, d) -> {
      long place = Counter.mix(seed + kind.ordinal());
      place = Counter.mix(place ^ sequence);
      place = Counter.mix(place ^ position);
      place = Counter.mix(place ^ ((long) head << 32) ^ d);
      return Counter.unitVariance(place);
    };
  }
}

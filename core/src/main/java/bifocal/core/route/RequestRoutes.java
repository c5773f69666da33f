package bifocal.core.route;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.Arrays;

/**
 * For each live request of a batch: the child, the reason, and the first query token whose masks
 * differ with its smallest differing key. Texts are made when asked for, not per step.
 */
public final class RequestRoutes {
  /** Stands for "no such position". */
  public static final int NONE = -1;

  /** Positions of a batch in which no masks differ. */
  private static final int[] NO_POSITIONS = {};

  private static final Child[] CHILDREN = Child.values();
  private static final RouteReason[] REASONS = RouteReason.values();

  private final byte[] child;
  private final byte[] reason;
  private final int[] query;
  private final int[] key;
  private final Expected expected;

  private RequestRoutes(byte[] child, byte[] reason, int[] query, int[] key, Expected expected) {
    this.child = child;
    this.reason = reason;
    this.query = query;
    this.key = key;
    this.expected = expected;
  }

  /**
   * What measurements say of a batch.
   *
   * @param nanos expected time of its route
   * @param otherwise expected time of the next best route
   */
  public record Expected(long nanos, long otherwise) {
    /** Nothing was measured, or there was nothing to choose. */
    public static final Expected UNKNOWN = new Expected(0, 0);
  }

  /** Begins the routes of so many requests. */
  public static Builder builder(int requests) {
    return new Builder(requests);
  }

  /** Every request to one child for one reason. */
  public static RequestRoutes all(int requests, Child child, RouteReason reason) {
    Builder builder = builder(requests);
    for (int r = 0; r < requests; r++) {
      builder.set(r, child, reason);
    }
    return builder.build();
  }

  /** Number of requests. */
  public int size() {
    return child.length;
  }

  /** Child that runs a request. */
  public Child child(int request) {
    return CHILDREN[child[request]];
  }

  /** Why. */
  public RouteReason reason(int request) {
    return REASONS[reason[request]];
  }

  /** Absolute position of the first query whose masks differ, {@link #NONE} where none does. */
  public int query(int request) {
    return query.length == 0 ? NONE : query[request];
  }

  /** Smallest key that the first such query must see and the fast child would hide. */
  public int key(int request) {
    return key.length == 0 ? NONE : key[request];
  }

  /** What measurements say of the batch, {@link Expected#UNKNOWN} where none was looked at. */
  public Expected expected() {
    return expected;
  }

  /** Number of requests that one child runs. */
  public int count(Child wanted) {
    return count(child, wanted);
  }

  private static int count(byte[] children, Child wanted) {
    int count = 0;
    for (byte child : children) {
      count += child == wanted.ordinal() ? 1 : 0;
    }
    return count;
  }

  /** One sentence, and what was measured if that was looked at. */
  public String text(int request) {
    return expected.equals(Expected.UNKNOWN)
        ? because(request)
        : because(request)
            + "; measured: "
            + micros(expected.nanos())
            + " µs expected for the batch, "
            + micros(expected.otherwise())
            + " µs otherwise";
  }

  private static long micros(long nanos) {
    return Math.round(nanos / 1_000.0);
  }

  private String because(int request) {
    String at = "query " + query(request) + " needs key " + key(request);
    return switch (reason(request)) {
      case NEEDS_FUTURE_KEY -> at;
      case NEEDS_KEY_BEHIND_WINDOW -> at + " behind the window";
      case MASK_EQUAL -> "image queries see the same keys under both masks";
      case NO_IMAGE_QUERY -> "no query lies in an image";
      case EMPTY -> "no query is scheduled";
      case LOWERED ->
          query(request) == NONE
              ? "image runs are non-causal, text runs causal"
              : at + ", given by a non-causal run";
      case NOT_LOWERABLE -> at + ", which no causal or non-causal run gives exactly";
      case FOLLOWS_BATCH -> query(request) == NONE ? "another request decides for the batch" : at;
      case PREFILL -> "the request is a prefill";
      case DECODE -> "the request is a decode";
      case PREDICATE -> "the predicate said so";
      case FIXED -> "the policy always chooses this child";
      case MEASURED -> "the other child is right, too, and slower here";
    };
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof RequestRoutes that
        && Arrays.equals(child, that.child)
        && Arrays.equals(reason, that.reason)
        && Arrays.equals(query, that.query)
        && Arrays.equals(key, that.key)
        && expected.equals(that.expected);
  }

  @Override
  public int hashCode() {
    return Arrays.hashCode(child) * 31 + Arrays.hashCode(reason);
  }

  @Override
  public String toString() {
    StringBuilder line = new StringBuilder("[");
    for (int r = 0; r < size(); r++) {
      line.append(r == 0 ? "" : ", ").append(child(r)).append(':').append(reason(r));
    }
    return line.append(']').toString();
  }

  /** Collects the routes of one batch. */
  public static final class Builder {
    private static final byte[] GIVEN_AWAY = {};

    private byte[] child;
    private byte[] reason;
    private int[] query = NO_POSITIONS;
    private int[] key = NO_POSITIONS;
    private Expected expected = Expected.UNKNOWN;

    private Builder(int requests) {
      if (requests < 0) {
        throw BifocalException.of(ErrorCode.NEGATIVE, "requests to route", requests, "at least 0");
      }
      child = new byte[requests];
      reason = new byte[requests];
    }

    /**
     * Sets a request's child and reason.
     *
     * @throws BifocalException {@code SHAPE_MISMATCH} for a request the batch does not have
     */
    public Builder set(int request, Child to, RouteReason why) {
      requireRequest(request);
      child[request] = (byte) to.ordinal();
      reason[request] = (byte) why.ordinal();
      return this;
    }

    /** Sets a request's child, reason and first difference. */
    public Builder set(int request, Child to, RouteReason why, int firstQuery, int smallestKey) {
      requireRequest(request);
      if (query.length == 0 && firstQuery != NONE) {
        query = positions();
        key = positions();
      }
      if (query.length > 0) {
        query[request] = firstQuery;
        key[request] = smallestKey;
      }
      return set(request, to, why);
    }

    /** Number of requests set to one child so far. */
    public int count(Child wanted) {
      return RequestRoutes.count(child, wanted);
    }

    /** Lets one child run the whole batch: requests meant for the other one follow. */
    public Builder follow(Child executed) {
      for (int r = 0; r < child.length; r++) {
        if (child[r] != executed.ordinal()) {
          child[r] = (byte) executed.ordinal();
          if (reason[r] != RouteReason.EMPTY.ordinal()) {
            reason[r] = (byte) RouteReason.FOLLOWS_BATCH.ordinal();
          }
        }
      }
      return this;
    }

    /** Says what measurements expect of the batch. */
    public Builder expecting(Expected times) {
      expected = times;
      return this;
    }

    private void requireRequest(int request) {
      if (request < 0 || request >= child.length) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "request to route", request, "below " + child.length);
      }
    }

    private int[] positions() {
      int[] positions = new int[child.length];
      Arrays.fill(positions, NONE);
      return positions;
    }

    /** The routes. They take over what was collected, so a builder builds once. */
    public RequestRoutes build() {
      RequestRoutes routes = new RequestRoutes(child, reason, query, key, expected);
      child = GIVEN_AWAY;
      reason = GIVEN_AWAY;
      query = NO_POSITIONS;
      key = NO_POSITIONS;
      return routes;
    }
  }
}

package bifocal.core.route;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.util.Arrays;

/**
 * Requests cut into runs of consecutive queries, so that a child without an image mask computes
 * images: text runs stay causal, image runs are non-causal. A request without runs goes whole.
 */
public final class LoweredRuns {
  private final int[] offsets;
  private final int[] runs;

  private LoweredRuns(int[] offsets, int[] runs) {
    this.offsets = offsets;
    this.runs = runs;
  }

  /** Begins the runs of so many requests. */
  public static Builder builder(int requests) {
    return new Builder(requests);
  }

  /** Number of requests. */
  public int requests() {
    return offsets.length - 1;
  }

  /** Number of runs of a request; 0 when it goes whole. */
  public int count(int request) {
    return offsets[request + 1] - offsets[request];
  }

  /** Number of runs of all requests. */
  public int total() {
    return offsets[offsets.length - 1];
  }

  /** Absolute position of a run's first query. */
  public int first(int request, int run) {
    return runs[3 * (offsets[request] + run)];
  }

  /** Absolute position of a run's last query, and of its last key. */
  public int last(int request, int run) {
    return runs[3 * (offsets[request] + run) + 1];
  }

  /** Keys a run's queries see after themselves: 0 when causal, -1 when unlimited. */
  public int rightWindow(int request, int run) {
    return runs[3 * (offsets[request] + run) + 2];
  }

  /** Whether a run is causal. */
  public boolean causal(int request, int run) {
    return rightWindow(request, run) == 0;
  }

  @Override
  public boolean equals(Object other) {
    return other instanceof LoweredRuns that
        && Arrays.equals(offsets, that.offsets)
        && Arrays.equals(runs, that.runs);
  }

  @Override
  public int hashCode() {
    return 31 * Arrays.hashCode(offsets) + Arrays.hashCode(runs);
  }

  /** Collects runs, request after request, in ascending order. */
  public static final class Builder {
    private int[] offsets;
    private int[] runs = new int[24];
    private int request;
    private int count;

    private Builder(int requests) {
      if (requests < 0) {
        throw BifocalException.of(ErrorCode.NEGATIVE, "requests to lower", requests, "at least 0");
      }
      offsets = new int[requests + 1];
    }

    /** Adds a run to the current request. */
    public Builder run(int first, int last, int rightWindow) {
      if (3 * count + 3 > runs.length) {
        runs = Arrays.copyOf(runs, 2 * runs.length);
      }
      runs[3 * count] = first;
      runs[3 * count + 1] = last;
      runs[3 * count + 2] = rightWindow;
      count++;
      return this;
    }

    /**
     * Ends the current request.
     *
     * @throws BifocalException {@code SHAPE_MISMATCH} when all requests have ended
     */
    public Builder endRequest() {
      if (request + 1 >= offsets.length) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "lowered requests", request + 1, "at most " + request);
      }
      offsets[++request] = count;
      return this;
    }

    /** The runs. They take over what was collected, so a builder builds once. */
    public LoweredRuns build() {
      LoweredRuns built = new LoweredRuns(offsets, Arrays.copyOf(runs, 3 * count));
      offsets = new int[0];
      return built;
    }
  }
}

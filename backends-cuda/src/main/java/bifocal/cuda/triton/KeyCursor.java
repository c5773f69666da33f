package bifocal.cuda.triton;

/**
 * Walks the queries of a batch and says which keys some of them see. It belongs to one build.
 *
 * <p>Keys are positions; a query sees no key when the largest is below the smallest.
 */
sealed interface KeyCursor permits WindowCursor, IntervalCursor {
  /** Begins with the first query of a live request. */
  void begin(int request);

  /** Goes over the next queries of the request. */
  void take(int queries);

  /** Smallest key that one of the queries just taken sees, not below 0. */
  int low();

  /** Largest key that one of the queries just taken sees, below the request's length. */
  int high();

  /** Keys before a query that a kernel is to show by itself, -1 when unlimited. */
  int leftWindow();

  /** Keys after a query that a kernel is to show by itself, -1 when unlimited. */
  int rightWindow();
}

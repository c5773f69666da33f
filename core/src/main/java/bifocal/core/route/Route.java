package bifocal.core.route;

import io.vavr.control.Option;

/** Where one step's batch of one layer group goes. Decided once per step, kept in its metadata. */
public sealed interface Route {
  /** Child and reason of each live request. */
  RequestRoutes requests();

  /** The whole batch runs on child A. */
  record ToChildA(RequestRoutes requests) implements Route {}

  /** The whole batch runs on child B. */
  record ToChildB(RequestRoutes requests) implements Route {}

  /**
   * Each request runs on its own child.
   *
   * @param runs how child B's image requests are cut into runs; absent when none is
   */
  record SplitByRequest(RequestRoutes requests, Option<LoweredRuns> runs) implements Route {}

  /** The whole batch runs on child B, image requests as runs. */
  record Lowered(RequestRoutes requests, LoweredRuns runs) implements Route {}

  /** Short name: {@code A}, {@code B}, {@code SPLIT} or {@code LOWERED}. */
  default String label() {
    return switch (this) {
      case ToChildA a -> "A";
      case ToChildB b -> "B";
      case SplitByRequest split -> "SPLIT";
      case Lowered lowered -> "LOWERED";
    };
  }

  /** The whole batch to one child. */
  static Route whole(Child child, RequestRoutes requests) {
    return switch (child) {
      case A -> new ToChildA(requests);
      case B -> new ToChildB(requests);
    };
  }
}

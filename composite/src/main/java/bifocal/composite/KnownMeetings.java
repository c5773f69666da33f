package bifocal.composite;

import bifocal.core.backend.Capabilities;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;

/**
 * What two declarations make together, worked out once for each two: children declare their
 * variants once, and are asked about them with every selection. A child that declares anew each
 * time is not remembered beyond a bound.
 */
final class KnownMeetings {
  private static final int MOST = 256;

  private final ConcurrentHashMap<Two, Capabilities> known = new ConcurrentHashMap<>();

  /**
   * Two declarations and the model's type, when they were asked for one. Declarations are told
   * apart by the identity of their parts: comparing what they list would cost more than it saves.
   */
  private record Two(Capabilities a, Capabilities b, Option<DType> model) {
    @Override
    public boolean equals(Object other) {
      return other instanceof Two that
          && same(a, that.a)
          && same(b, that.b)
          && model.equals(that.model);
    }

    @SuppressWarnings("ReferenceEquality") // identity is what tells declarations apart here
    private static boolean same(Capabilities one, Capabilities other) {
      return one.reference() == other.reference() && one.extensions() == other.extensions();
    }

    @Override
    public int hashCode() {
      return 31 * (31 * identity(a) + identity(b)) + model.hashCode();
    }

    private static int identity(Capabilities one) {
      return 31 * System.identityHashCode(one.reference())
          + System.identityHashCode(one.extensions());
    }
  }

  Capabilities of(
      Capabilities a, Capabilities b, Option<DType> model, Supplier<Capabilities> together) {
    Two two = new Two(a, b, model);
    Capabilities before = known.get(two);
    if (before != null) {
      return before;
    }
    Capabilities found = together.get();
    if (known.size() >= MOST) {
      known.clear();
    }
    known.put(two, found);
    return found;
  }
}

package bifocal.tvm.ffi;

import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/** What the process does about each signal, as it was at one moment. */
final class SignalHandlers {
  private static final int SIGNALS = 32;

  /** Where glibc keeps the flags: behind the handler and the mask of 128 bytes. */
  private static final long FLAGS = 136;

  private final Arena arena;
  private final MemorySegment actions;

  private SignalHandlers(Arena arena, MemorySegment actions) {
    this.arena = arena;
    this.actions = actions;
  }

  /** What is so now; the arena outlives the result. */
  static SignalHandlers now(Arena arena) {
    MemorySegment actions = SystemLibrary.signalActions(arena, SIGNALS);
    for (int signal = 1; signal < SIGNALS; signal++) {
      SystemLibrary.signalAction(signal, MemorySegment.NULL, action(actions, signal));
    }
    return new SignalHandlers(arena, actions);
  }

  /**
   * Sets again what has changed since.
   *
   * @return the signals that had changed
   */
  Seq<Integer> restore() {
    SignalHandlers present = now(arena);
    Seq<Integer> changed =
        Vector.range(1, SIGNALS)
            .filter(signal -> differ(action(present.actions, signal), action(actions, signal)));
    changed.forEach(
        signal -> SystemLibrary.signalAction(signal, action(actions, signal), MemorySegment.NULL));
    return changed;
  }

  private static boolean differ(MemorySegment one, MemorySegment other) {
    return one.get(JAVA_LONG, 0) != other.get(JAVA_LONG, 0)
        || one.get(JAVA_INT, FLAGS) != other.get(JAVA_INT, FLAGS);
  }

  private static MemorySegment action(MemorySegment actions, int signal) {
    return actions.asSlice(signal * SystemLibrary.ACTION_BYTES, SystemLibrary.ACTION_BYTES);
  }
}

package bifocal.tvm.ffi;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;
import static java.lang.foreign.ValueLayout.JAVA_SHORT;

import io.vavr.collection.HashMap;
import io.vavr.collection.Map;
import io.vavr.control.Option;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Lets the current thread ask for signal handlers in vain: to {@code sigaction} and {@code signal}
 * the kernel says that the handler is set, and sets none.
 *
 * <p>The JVM meets null references, safepoints and ends of stacks by catching SIGSEGV. A library
 * whose initialiser takes that signal for itself ends the JVM at the next of them, on whatever
 * thread; putting the handler back after loading leaves a gap. So the thread that loads a library
 * is one that cannot change handlers at all. The shield is a seccomp filter: it holds for this
 * thread alone and as long as it lives, and asks for no privilege.
 */
final class SignalShield {
  private static final int PR_SET_SECCOMP = 22;
  private static final int PR_SET_NO_NEW_PRIVS = 38;
  private static final long SECCOMP_MODE_FILTER = 2;

  private static final short LOAD_WORD = 0x20;
  private static final short JUMP_IF_EQUAL = 0x15;
  private static final short RETURN = 0x06;

  /** Where the kernel puts what the filter asks about: number, architecture, second argument. */
  private static final int SYSTEM_CALL = 0;

  private static final int ARCHITECTURE = 4;
  private static final int NEW_ACTION_LOW = 24;
  private static final int NEW_ACTION_HIGH = 28;

  private static final int ALLOWED = 0x7FFF0000;

  /** The call is not made and returns 0. */
  private static final int PRETENDED = 0x00050000;

  private static final int INSTRUCTION_BYTES = 8;
  private static final int INSTRUCTIONS = 10;

  /** How the kernel names an architecture, and the number of {@code rt_sigaction} there. */
  private record Machine(int architecture, int setSignalAction) {}

  private static final Map<String, Machine> MACHINES =
      HashMap.of("amd64", new Machine(0xC000003E, 13), "aarch64", new Machine(0xC00000B7, 134));

  private SignalShield() {}

  /**
   * Raises the shield over the current thread, for good.
   *
   * @return whether the kernel took it
   */
  static boolean raise() {
    Option<Machine> machine = MACHINES.get(System.getProperty("os.arch"));
    return machine.map(SignalShield::raise).getOrElse(false);
  }

  private static boolean raise(Machine machine) {
    try (Arena arena = Arena.ofConfined()) {
      MemorySegment filter = arena.allocate(INSTRUCTIONS * INSTRUCTION_BYTES, Long.BYTES);
      instruction(filter, 0, LOAD_WORD, 0, 0, ARCHITECTURE);
      instruction(filter, 1, JUMP_IF_EQUAL, 0, 7, machine.architecture);
      instruction(filter, 2, LOAD_WORD, 0, 0, SYSTEM_CALL);
      instruction(filter, 3, JUMP_IF_EQUAL, 0, 5, machine.setSignalAction);
      instruction(filter, 4, LOAD_WORD, 0, 0, NEW_ACTION_LOW);
      instruction(filter, 5, JUMP_IF_EQUAL, 0, 2, 0);
      instruction(filter, 6, LOAD_WORD, 0, 0, NEW_ACTION_HIGH);
      instruction(filter, 7, JUMP_IF_EQUAL, 1, 0, 0);
      instruction(filter, 8, RETURN, 0, 0, PRETENDED);
      instruction(filter, 9, RETURN, 0, 0, ALLOWED);
      MemorySegment program = arena.allocate(2L * Long.BYTES, Long.BYTES);
      program.set(JAVA_SHORT, 0, (short) INSTRUCTIONS);
      program.set(JAVA_LONG, 8, filter.address());
      return SystemLibrary.threadControl(PR_SET_NO_NEW_PRIVS, 1, 0) == 0
          && SystemLibrary.threadControl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program.address())
              == 0;
    }
  }

  /** One {@code struct sock_filter}; jumps are counted from the instruction after this one. */
  private static void instruction(
      MemorySegment filter, int index, short code, int ifTrue, int ifFalse, int operand) {
    long offset = (long) index * INSTRUCTION_BYTES;
    filter.set(JAVA_SHORT, offset, code);
    filter.set(JAVA_BYTE, offset + 2, (byte) ifTrue);
    filter.set(JAVA_BYTE, offset + 3, (byte) ifFalse);
    filter.set(JAVA_INT, offset + 4, operand);
  }
}

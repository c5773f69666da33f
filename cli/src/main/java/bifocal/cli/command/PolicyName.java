package bifocal.cli.command;

import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.core.route.Child;
import bifocal.core.route.RoutingPolicy;
import bifocal.routing.FixedRouting;
import bifocal.routing.Lowering;
import bifocal.routing.MMPrefixAttentionRouting;
import bifocal.routing.PrefillDecodeRouting;
import io.vavr.collection.Array;
import io.vavr.collection.Seq;
import java.util.Locale;

/** The routing policies that a command can be told to use. */
public enum PolicyName {
  /** By what images change. */
  MM_PREFIX,
  /** Prefills to child A, decodes to child B. */
  PREFILL_DECODE,
  /** Everything to child A. */
  CHILD_A,
  /** Everything to child B. */
  CHILD_B;

  /** The names as users write them. */
  public static Seq<String> labels() {
    return Array.of(values()).map(PolicyName::label);
  }

  /** The policy that a user calls so. */
  public static PolicyName of(String label) {
    return Array.of(values())
        .find(name -> name.label().equals(label))
        .getOrElseThrow(
            () ->
                CliFailure.of(
                    ErrorCode.INVALID_OPTION,
                    "unknown policy '"
                        + label
                        + "'; "
                        + NearestName.adviceElseAll(label, labels())));
  }

  /** Name as users write it, for instance {@code mm-prefix}. */
  public String label() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }

  /**
   * The policy.
   *
   * @param splits whether one batch may be divided
   * @param lowering how far images are cut into runs; only {@link #MM_PREFIX} can
   */
  public RoutingPolicy policy(boolean splits, Lowering lowering) {
    if (lowering != Lowering.OFF && this != MM_PREFIX) {
      throw CliFailure.of(
          ErrorCode.INVALID_OPTION,
          "policy " + label() + " lowers nothing; lowering needs policy " + MM_PREFIX.label());
    }
    return switch (this) {
      case MM_PREFIX -> new MMPrefixAttentionRouting(splits, lowering);
      case PREFILL_DECODE ->
          splits ? new PrefillDecodeRouting() : new PrefillDecodeRouting().wholeBatch();
      case CHILD_A -> new FixedRouting(Child.A);
      case CHILD_B -> new FixedRouting(Child.B);
    };
  }
}

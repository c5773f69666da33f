package bifocal.cli.backend;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.Composed;
import bifocal.core.bench.Calibration;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.LayerGroup;
import bifocal.routing.MMPrefixAttentionRouting;
import bifocal.routing.MeasuredRouting;
import io.vavr.collection.Seq;

/** Routes of a pair that measured times choose. */
public final class MeasuredRoutes {
  private MeasuredRoutes() {}

  /**
   * What routes between the children of a backend.
   *
   * @param name how the user calls the backend
   * @param routing decides what is right
   * @throws BifocalException {@code INVALID_OPTION} for a backend that is no pair, or one of whose
   *     children in these layers nothing was measured
   */
  public static MeasuredRouting of(
      AttentionBackend<?> backend,
      String name,
      MMPrefixAttentionRouting routing,
      Calibration times,
      Seq<LayerGroup> groups) {
    if (!(backend instanceof Composed pair)) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION, "--calibration of " + name, "one backend", "a pair");
    }
    MeasuredRouting measured =
        new MeasuredRouting(routing, times, pair.childA().name(), pair.childB().name());
    Seq<LayerGroup> unknown = groups.filter(group -> !measured.knows(group));
    if (unknown.nonEmpty()) {
      throw BifocalException.of(
              ErrorCode.INVALID_OPTION,
              "--calibration",
              "nothing on "
                  + pair.childA().name()
                  + " and "
                  + pair.childB().name()
                  + " in layers "
                  + unknown.map(MeasuredRoutes::layers).mkString(", "),
              "times of both")
          .withRemedy("measure again with " + times.provenance().command());
    }
    return measured;
  }

  /**
   * The refusal of measured times beside something that the user chose.
   *
   * @param choice what was chosen
   * @param wanted what could stand there
   */
  public static BifocalException refusedBeside(String choice, String wanted) {
    return BifocalException.of(
            ErrorCode.INVALID_OPTION,
            "--calibration beside " + choice,
            "a choice that measurements must not change",
            wanted)
        .withRemedy("leave --calibration out, or leave the choice to it");
  }

  private static String layers(LayerGroup group) {
    return group.name()
        + " ("
        + group.spec().dtype().label()
        + ", head size "
        + group.spec().headSize()
        + ")";
  }
}

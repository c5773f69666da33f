package bifocal.cli.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.Composed;
import bifocal.core.backend.Execution;
import bifocal.core.backend.FeatureSet;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvLayout;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.RoutingPolicy;
import bifocal.core.select.SelectionReport;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * What a pair can do.
 *
 * @param backend name of the pair
 * @param children names of the general and the fast child
 * @param policy what routes between them
 * @param workspace bytes for a usual largest batch; absent without a device or kernels
 */
record Composition(
    String backend,
    Seq<String> children,
    String policy,
    Seq<String> headSizes,
    Seq<String> kvCacheDtypes,
    Seq<String> kernelBlockSizes,
    Seq<String> kvLayouts,
    GraphSupport graphSupport,
    Option<Workspace> workspace) {

  /** The batch that a workspace is planned for here. */
  private static final BatchLimits LIMITS = new BatchLimits(16, 2048, 8192);

  /**
   * Bytes of a workspace.
   *
   * @param zeroedBytes zero before each step
   * @param scratchBytes overwritten freely
   * @param stepBytes leased by each step in flight
   */
  record Workspace(
      int maxRequests, int maxQueryTokens, long zeroedBytes, long scratchBytes, long stepBytes) {}

  /** A pair anywhere, with all its variants. */
  static Composition of(
      AttentionBackend<?> pair, RoutingPolicy policy, FeatureSet features, GraphSupport graphs) {
    return of(pair, policy, features, graphs, Option.none());
  }

  /** A pair that serves a layer on a device. */
  static Composition of(
      AttentionBackend<?> pair,
      RoutingPolicy policy,
      AttentionRequest asked,
      SelectionReport report) {
    return of(
        pair,
        policy,
        pair.capabilities(asked).all(),
        report.graphSupport(),
        report
            .contract()
            .filter(contract -> kernelsHere(pair))
            .map(
                contract -> pair.workspace(LayerGroup.of("layer", asked.layer()), contract, LIMITS))
            .map(Composition::workspace));
  }

  private static Composition of(
      AttentionBackend<?> pair,
      RoutingPolicy policy,
      FeatureSet features,
      GraphSupport graphs,
      Option<Workspace> workspace) {
    return new Composition(
        pair.name().value(),
        pair instanceof Composed composed
            ? Vector.of(composed.childA().name().value(), composed.childB().name().value())
            : Vector.empty(),
        policy.name(),
        features.headSizes().rules().map(String::valueOf),
        features.kvCacheDtypes().toVector().map(KvCacheDtype::label),
        features.blockSizes().sizes().map(String::valueOf),
        features.kvLayouts().map(KvLayout::name),
        graphs,
        workspace);
  }

  private static boolean kernelsHere(AttentionBackend<?> pair) {
    return pair.execution().status() == Execution.Status.NATIVE;
  }

  private static Workspace workspace(WorkspacePlan plan) {
    return new Workspace(
        LIMITS.maxRequests(),
        LIMITS.maxQueryTokens(),
        plan.zeroedBytes(),
        plan.scratchBytes(),
        plan.stepBytes());
  }

  /** The same for a person. */
  String text() {
    return line(backend, policy + " routes between " + children.mkString(" and "))
        + line("  head sizes", headSizes.mkString(", "))
        + line("  KV cache dtypes", kvCacheDtypes.mkString(", "))
        + line("  kernel block sizes", kernelBlockSizes.mkString(", "))
        + line("  KV layouts", kvLayouts.mkString(", "))
        + line("  graphs", graphSupport.name())
        + line("  workspace", workspace.map(Composition::text).getOrElse("no kernels on a device"));
  }

  private static String text(Workspace workspace) {
    return workspace.zeroedBytes()
        + " zeroed, "
        + workspace.scratchBytes()
        + " scratch and "
        + workspace.stepBytes()
        + " step bytes for "
        + workspace.maxRequests()
        + " requests and "
        + workspace.maxQueryTokens()
        + " query tokens";
  }

  private static String line(String what, String value) {
    return String.format("%-20s %s%n", what, value);
  }
}

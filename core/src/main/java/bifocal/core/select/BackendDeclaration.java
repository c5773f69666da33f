package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.graph.GraphSupport;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.function.Function;

/**
 * All that is declared of one backend, whether or not its kernels are here: the rows of the
 * reference, what its variants can do, how one of them is resolved, and the fine print.
 *
 * @param rows rows of the feature tables, one for each variant
 * @param capabilities what some variant can do
 * @param choice resolves the variant of a request
 * @param finePrint rules about combinations, in the order in which they are asked
 * @param remarks what is worth knowing of a request, beside what its variant notes; asked for when
 *     somebody reads it
 */
public record BackendDeclaration(
    BackendName name,
    Seq<FeatureRow> rows,
    Capabilities capabilities,
    VariantChoice choice,
    Seq<FinePrint> finePrint,
    Function<AttentionRequest, Seq<String>> remarks)
    implements Tabulated {

  /** A backend without remarks. */
  public BackendDeclaration(
      BackendName name,
      Seq<FeatureRow> rows,
      Capabilities capabilities,
      VariantChoice choice,
      Seq<FinePrint> finePrint) {
    this(name, rows, capabilities, choice, finePrint, request -> Vector.empty());
  }

  /** A backend of one variant, which can do what its row says and nothing else. */
  public static BackendDeclaration of(FeatureRow row, GraphSupport graphSupport) {
    return of(row, Capabilities.of(row.features()), graphSupport);
  }

  /** A backend of one variant. */
  public static BackendDeclaration of(
      FeatureRow row, Capabilities capabilities, GraphSupport graphSupport) {
    ResolvedVariant only = ResolvedVariant.of("", capabilities, graphSupport);
    return new BackendDeclaration(
        row.backend(), Vector.of(row), capabilities, request -> only, Vector.empty());
  }

  /** A backend of several variants. */
  public static BackendDeclaration of(
      BackendName name, Seq<FeatureRow> rows, Capabilities capabilities, VariantChoice choice) {
    return new BackendDeclaration(name, rows, capabilities, choice, Vector.empty());
  }

  /** The same backend whose variant is resolved in another way. */
  public BackendDeclaration choosing(VariantChoice other) {
    return new BackendDeclaration(name, rows, capabilities, other, finePrint, remarks);
  }

  /** The same backend with one more rule, which is asked last. */
  public BackendDeclaration but(FinePrint rule) {
    return new BackendDeclaration(
        name, rows, capabilities, choice, finePrint.append(rule), remarks);
  }

  /** The same backend with other remarks. */
  public BackendDeclaration remarking(Function<AttentionRequest, Seq<String>> others) {
    return new BackendDeclaration(name, rows, capabilities, choice, finePrint, others);
  }

  /** The variant that serves a request. */
  public ResolvedVariant variant(AttentionRequest request) {
    return choice.resolve(request);
  }

  /** What speaks against a request that every table allows: the first rule that objects. */
  public Option<InvalidReason> objection(AttentionRequest request) {
    ResolvedVariant variant = variant(request);
    if (variant.refusal().isDefined()) {
      return variant.refusal();
    }
    for (FinePrint rule : finePrint) {
      Option<InvalidReason> objection = rule.objection(request, variant);
      if (objection.isDefined()) {
        return objection;
      }
    }
    return Option.none();
  }
}

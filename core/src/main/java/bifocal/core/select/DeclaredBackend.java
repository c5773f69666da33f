package bifocal.core.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Capabilities;
import bifocal.core.backend.Execution;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.backend.ResolvesVariants;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * A backend that is declared, validated and selected, and has no kernels in this build. It says
 * what it would need.
 */
public final class DeclaredBackend
    implements AttentionBackend<AttentionMetadata>, ResolvesVariants, Tabulated {
  private final BackendDeclaration declaration;
  private final Execution execution;

  private DeclaredBackend(BackendDeclaration declaration, Execution execution) {
    this.declaration = declaration;
    this.execution = execution;
  }

  /**
   * A backend without kernels.
   *
   * @param needs a code, then text: what the backend would need to run
   */
  public static DeclaredBackend needing(String needs, BackendDeclaration declaration) {
    return new DeclaredBackend(declaration, new Execution(Execution.Status.NOT_HERE, needs));
  }

  /** What is declared. */
  public BackendDeclaration declaration() {
    return declaration;
  }

  @Override
  public BackendName name() {
    return declaration.name();
  }

  @Override
  public Seq<FeatureRow> rows() {
    return declaration.rows();
  }

  @Override
  public Capabilities capabilities() {
    return declaration.capabilities();
  }

  @Override
  public Capabilities capabilities(AttentionRequest request) {
    return declaration.variant(request).capabilities();
  }

  @Override
  public ResolvedVariant variant(AttentionRequest request) {
    return declaration.variant(request);
  }

  @Override
  public Seq<String> remarks(AttentionRequest request) {
    return declaration.remarks().apply(request);
  }

  @Override
  public Option<InvalidReason> checkCombination(AttentionRequest request) {
    return declaration.objection(request);
  }

  @Override
  public Option<InvalidReason> missingOnThisHost(AttentionRequest request) {
    return Option.some(
        new InvalidReason(
            ReasonCode.NOT_ON_THIS_HOST,
            "kernels not on this host: " + execution.reason(),
            "no kernels of " + name() + " in this build",
            execution.reason()));
  }

  @Override
  public Execution execution() {
    return execution;
  }

  @Override
  public AttentionMetadataBuilder<AttentionMetadata> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    throw notHere();
  }

  @Override
  public AttentionImpl<AttentionMetadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    throw notHere();
  }

  private BifocalException notHere() {
    return BifocalException.of(
            ErrorCode.NATIVE_MISSING, "kernels of " + name(), "none in this build", "some")
        .withRemedy(execution.reason());
  }

  @Override
  public String toString() {
    return name().value();
  }
}

package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.core.layer.AttentionLayerSpec;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.function.Supplier;

/**
 * Backends of latent prefill, first choice first. One that the user names is taken or refused.
 *
 * @param backends those that are tried
 * @param others those that may be named, and are not tried
 */
public record LatentPrefillOrder(
    Seq<LatentPrefillBackend> backends, Seq<LatentPrefillBackend> others) {
  private static final LatentPrefillOrder OF_UNKNOWN_DEVICES =
      new LatentPrefillOrder(Vector.empty(), Vector.of(LatentPrefillBackend.FLASH_ATTN));

  /**
   * The backend of a layer whose decode backend has a dense path for prefills.
   *
   * @param registered what hosts registered beside the platform's backends, or in their place
   */
  public Validation<Seq<InvalidReason>, LatentPrefill> choose(
      AttentionRequest asked, AttentionConfig config, LatentPrefillRegistry.Snapshot registered) {
    Option<AttentionLayerSpec.Mla> latent = latent(asked.layer());
    if (latent.isEmpty()) {
      return Validation.valid(LatentPrefill.NONE);
    }
    if (asked.layer().choosesKeys() && config.sparseMlaForceMqa()) {
      return Validation.valid(LatentPrefill.none(LatentPrefill.FORCED_MQA));
    }
    Option<String> named = config.mlaPrefillBackend();
    return named.isDefined()
        ? explicit(find(named.get(), registered), asked, latent.get())
        : inForce(registered).automatic(asked, latent.get());
  }

  /**
   * The backend of a layer on a device without a compute capability: {@code FLASH_ATTN}, which is
   * not asked, unless the user names another one.
   */
  public static Validation<Seq<InvalidReason>, LatentPrefill> withoutCapability(
      AttentionRequest asked, AttentionConfig config, LatentPrefillRegistry.Snapshot registered) {
    boolean open = latent(asked.layer()).isDefined() && config.mlaPrefillBackend().isEmpty();
    return open
        ? Validation.valid(
            LatentPrefill.by(LatentPrefillBackend.FLASH_ATTN.name())
                .remarking(
                    "no compute capability is known of "
                        + asked.device().label()
                        + ", so FLASH_ATTN runs prefills and was not asked"))
        : OF_UNKNOWN_DEVICES.choose(asked, config, registered);
  }

  private LatentPrefillOrder inForce(LatentPrefillRegistry.Snapshot registered) {
    return new LatentPrefillOrder(backends.map(registered::inPlaceOf), others);
  }

  /** The latent attention underneath a layer, absent for other layers. */
  public static Option<AttentionLayerSpec.Mla> latent(AttentionLayerSpec layer) {
    return switch (layer) {
      case AttentionLayerSpec.Mla mla -> Option.some(mla);
      case AttentionLayerSpec.SparseMla sparse -> Option.some(sparse.latent());
      case AttentionLayerSpec.Dense dense -> Option.none();
      case AttentionLayerSpec.BlockSparse sparse -> Option.none();
    };
  }

  private static Validation<Seq<InvalidReason>, LatentPrefill> explicit(
      LatentPrefillBackend backend, AttentionRequest asked, AttentionLayerSpec.Mla mla) {
    Seq<String> reasons = backend.reasons(asked, mla);
    return reasons.isEmpty()
        ? Validation.valid(LatentPrefill.by(backend.name()))
        : refused(
            () ->
                "Selected MLA prefill backend "
                    + backend.name()
                    + " is not valid for this configuration. Reason: "
                    + RefusalText.listed(reasons),
            backend.name());
  }

  private Validation<Seq<InvalidReason>, LatentPrefill> automatic(
      AttentionRequest asked, AttentionLayerSpec.Mla mla) {
    Option<LatentPrefillBackend> first = backends.find(b -> b.serves(asked, mla));
    if (first.isDefined()) {
      return Validation.valid(LatentPrefill.by(first.get().name()));
    }
    return asked.layer().choosesKeys()
        ? Validation.valid(
            LatentPrefill.none(
                () -> nobody(asked, mla) + " Every prefill token attends over its chosen keys."))
        : refused(() -> nobody(asked, mla), "none");
  }

  private String nobody(AttentionRequest asked, AttentionLayerSpec.Mla mla) {
    return "No valid MLA prefill backend found with "
        + LatentPrefillBackend.Dimensions.of(mla)
        + " on "
        + asked.device().label()
        + ". Reasons: "
        + backends
            .map(b -> b.name() + ": " + b.reasons(asked, mla).mkString("[", ", ", "]"))
            .mkString("{", ", ", "}")
        + ".";
  }

  private LatentPrefillBackend find(String name, LatentPrefillRegistry.Snapshot registered) {
    Seq<LatentPrefillBackend> known = backends.appendAll(others).distinctBy(b -> b.name());
    return registered
        .find(name)
        .orElse(() -> known.find(backend -> backend.name().equals(name)))
        .getOrElseThrow(
            () ->
                unknown(
                    name,
                    known
                        .map(LatentPrefillBackend::name)
                        .appendAll(registered.names())
                        .distinct()));
  }

  private static BifocalException unknown(String name, Seq<String> known) {
    if (name.equals(LatentPrefillRegistry.CUSTOM)) {
      return BifocalException.of(
              ErrorCode.UNKNOWN_BACKEND, "MLA prefill backend CUSTOM must be registered before use")
          .withRemedy("register one with the selector's LatentPrefillRegistry");
    }
    return BifocalException.of(
            ErrorCode.UNKNOWN_BACKEND,
            "Unknown MLA prefill backend: '"
                + name
                + "'. Valid options are: "
                + known.mkString(", "))
        .withRemedy(NearestName.advice(name, known));
  }

  private static Validation<Seq<InvalidReason>, LatentPrefill> refused(
      Supplier<String> text, String seen) {
    return Validation.invalid(
        Vector.of(
            new InvalidReason(
                ReasonCode.COMBINATION, text, seen, "a prefill backend that serves the layer")));
  }
}

package bifocal.cli.replay;

import bifocal.cli.backend.BackendCatalog;
import bifocal.cli.backend.MeasuredRoutes;
import bifocal.cli.replay.Replay.Contender;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.BackendValidator.Accepted;
import bifocal.core.backend.BackendValidator.Scope;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvContract;
import bifocal.core.backend.KvContract.Party;
import bifocal.core.bench.Calibration;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvScales;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.RoutingPolicy;
import bifocal.reference.ReferenceBackend;
import bifocal.reference.shadow.ShadowBackend;
import bifocal.routing.MMPrefixAttentionRouting;
import bifocal.routing.MeasuredRouting;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.nio.file.Path;

/**
 * Looks up the backends of a replay, and validates them for every layer group before any memory is
 * allocated.
 */
record Contenders(
    BackendCatalog catalog,
    RoutingPolicy policy,
    Seq<LayerGroup> groups,
    DeviceProfile device,
    int blockSize) {

  /**
   * A backend that must serve.
   *
   * @throws BifocalException {@code UNKNOWN_BACKEND}, {@code INVALID_COMPOSITION} or {@code
   *     INVALID_SELECTION} with every reason
   */
  Contender required(String name) {
    Validation<Seq<String>, Contender> found = find(name);
    if (found.isInvalid()) {
      throw BifocalException.of(
          ErrorCode.INVALID_SELECTION,
          "Selected backend "
              + name
              + " is not valid for this model: "
              + found.getError().mkString("; "));
    }
    return found.get();
  }

  /**
   * A pair that must serve, on routes that measured times choose.
   *
   * @param routing decides what is right
   * @throws BifocalException {@code INVALID_OPTION} for a backend that is no pair, or one of whose
   *     children in these layers nothing was measured; else as {@link #required}
   */
  Contender measured(String name, MMPrefixAttentionRouting routing, Calibration times) {
    MeasuredRouting measured =
        MeasuredRoutes.of(required(name).backend(), name, routing, times, groups);
    return new Contenders(catalog, measured, groups, device, blockSize).required(name);
  }

  /**
   * A backend that must serve with another in its shadow.
   *
   * @param recorded folder for the worst case, absent when it is not wanted
   * @throws BifocalException {@code INVALID_SELECTION} with every reason
   */
  Contender shadowed(Contender primary, String shadow, Option<Path> recorded) {
    AttentionBackend<?> beside =
        shadow.equalsIgnoreCase(ReferenceBackend.NAME.value())
            ? reference(primary)
            : required(shadow).backend();
    ShadowRecorder recorder = new ShadowRecorder(primary.backend(), beside.name(), recorded);
    Validation<Seq<String>, Contender> found =
        accepted(ShadowBackend.of(primary.backend(), beside, recorder));
    if (found.isInvalid()) {
      throw BifocalException.of(
          ErrorCode.INVALID_SELECTION,
          "Selected backend "
              + primary.backend().name()
              + " cannot run with the shadow "
              + beside.name()
              + ": "
              + found.getError().mkString("; "));
    }
    return found.get().inspected(new Inspection(Option.some(recorder), Option.none()));
  }

  /** The reference reads every layout, so it reads the primary's. */
  private static ReferenceBackend reference(Contender primary) {
    return ReferenceBackend.over(
        primary.backend().capabilities().all().kvLayouts().toJavaArray(KvLayout[]::new));
  }

  /** A backend, or for each layer group every reason against it. */
  Validation<Seq<String>, Contender> find(String name) {
    return accepted(catalog.find(name, policy));
  }

  private Validation<Seq<String>, Contender> accepted(AttentionBackend<?> backend) {
    Seq<KvCacheSpec> specs = Vector.empty();
    Seq<String> reasons = Vector.empty();
    for (LayerGroup group : groups) {
      Validation<Seq<InvalidReason>, KvCacheSpec> contract = contract(backend, group);
      specs = contract.isValid() ? specs.append(contract.get()) : specs;
      reasons =
          contract.isValid()
              ? reasons
              : reasons.appendAll(
                  contract.getError().map(reason -> group.name() + ": " + reason.text()));
    }
    return reasons.isEmpty()
        ? Validation.valid(new Contender(backend, specs, Inspection.NONE))
        : Validation.invalid(reasons);
  }

  private Validation<Seq<InvalidReason>, KvCacheSpec> contract(
      AttentionBackend<?> backend, LayerGroup group) {
    AttentionRequest request = AttentionRequest.of(group.spec(), device);
    Validation<Seq<InvalidReason>, Accepted> accepted =
        new BackendValidator(Scope.EXECUTION).validate(backend, request);
    return accepted.isInvalid()
        ? Validation.invalid(accepted.getError())
        : KvContract.resolve(
            Party.writer(backend, request),
            Vector.of(Party.reader(backend, request)),
            group.spec(),
            KvScales.ONE,
            Option.some(blockSize));
  }
}

package bifocal.cli.replay;

import bifocal.cli.backend.BackendCatalog;
import bifocal.cli.replay.Replay.Contender;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendValidator;
import bifocal.core.backend.BackendValidator.Accepted;
import bifocal.core.backend.BackendValidator.Scope;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.KvContract;
import bifocal.core.backend.KvContract.Party;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvScales;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.RoutingPolicy;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import io.vavr.control.Validation;

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

  /** A backend, or for each layer group every reason against it. */
  Validation<Seq<String>, Contender> find(String name) {
    AttentionBackend<?> backend = catalog.find(name, policy);
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
        ? Validation.valid(new Contender(backend, specs))
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

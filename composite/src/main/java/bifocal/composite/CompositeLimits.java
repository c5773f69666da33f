package bifocal.composite;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * What a composite claims at most, whatever its children can do together.
 *
 * @param devices where it runs
 * @param headSizes head sizes it runs
 * @param kernelBlockSizes kernel block sizes it runs
 * @param kvCacheDtypes types of cache it reads and writes
 * @param referenceOnly whether it claims nothing beyond the reference, although its children could
 * @param rules what its fast child must fulfil besides
 */
public record CompositeLimits(
    Option<DeviceSupport> devices,
    Option<HeadSizes> headSizes,
    Option<BlockSizes> kernelBlockSizes,
    Option<Seq<KvCacheDtype>> kvCacheDtypes,
    boolean referenceOnly,
    Seq<PairRule> rules) {

  /** As much as the children can do together. */
  public static final CompositeLimits NONE =
      new CompositeLimits(
          Option.none(), Option.none(), Option.none(), Option.none(), false, Vector.empty());

  /** The same limits, and only these devices. */
  public CompositeLimits onlyOn(DeviceSupport support) {
    return new CompositeLimits(
        Option.some(support), headSizes, kernelBlockSizes, kvCacheDtypes, referenceOnly, rules);
  }

  /** The same limits, and only these head sizes. */
  public CompositeLimits headSizes(Integer... sizes) {
    return new CompositeLimits(
        devices,
        Option.some(HeadSizes.exactly(sizes)),
        kernelBlockSizes,
        kvCacheDtypes,
        referenceOnly,
        rules);
  }

  /** The same limits, and only these kernel block sizes. */
  public CompositeLimits kernelBlockSizes(Integer... tokens) {
    return new CompositeLimits(
        devices,
        headSizes,
        Option.some(BlockSizes.exactly(tokens)),
        kvCacheDtypes,
        referenceOnly,
        rules);
  }

  /** The same limits, and only these types of cache. */
  public CompositeLimits kvCacheDtypes(KvCacheDtype... types) {
    return new CompositeLimits(
        devices, headSizes, kernelBlockSizes, Option.some(Vector.of(types)), referenceOnly, rules);
  }

  /** The same limits, and nothing that the reference does not know of a composite. */
  public CompositeLimits asTheReference() {
    return new CompositeLimits(devices, headSizes, kernelBlockSizes, kvCacheDtypes, true, rules);
  }

  /** The same limits, and one more rule about the fast child. */
  public CompositeLimits provided(PairRule rule) {
    return new CompositeLimits(
        devices, headSizes, kernelBlockSizes, kvCacheDtypes, referenceOnly, rules.append(rule));
  }

  Option<InvalidReason> objection(AttentionBackend<?> childB, AttentionRequest asked) {
    for (PairRule rule : rules) {
      Option<InvalidReason> objection = rule.objection(childB, asked);
      if (objection.isDefined()) {
        return objection;
      }
    }
    return Option.none();
  }

  FeatureSet limit(FeatureSet features) {
    return new FeatureSet(
        features.dtypes(),
        kvCacheDtypes.fold(
            features::kvCacheDtypes, allowed -> features.kvCacheDtypes().filter(allowed::contains)),
        kernelBlockSizes.fold(
            features::blockSizes, allowed -> allowed.intersect(features.blockSizes())),
        headSizes.fold(features::headSizes, allowed -> allowed.intersect(features.headSizes())),
        features.types(),
        features.imageMasks(),
        features.features(),
        features.kvLayouts(),
        devices.fold(
            features::devices, allowed -> SharedFeatures.devices(features.devices(), allowed)));
  }
}

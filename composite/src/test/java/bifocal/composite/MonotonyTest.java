package bifocal.composite;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.composite.SummingBackend.Journal;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.DeviceSupport.Range;
import bifocal.core.backend.Feature;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.HashSet;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import java.util.Random;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** A child that learns something never takes anything from its composite. */
class MonotonyTest {
  /** Features that say what a backend is, rather than what it can do. */
  private static final Set<Feature> KINDS =
      HashSet.of(Feature.MLA, Feature.SPARSE, Feature.KV_WRITE_IN_FORWARD);

  private static final KvCacheDtype[] CACHES = {
    KvCacheDtype.AUTO, KvCacheDtype.FLOAT16, KvCacheDtype.BFLOAT16, KvCacheDtype.FP8
  };
  private static final Seq<HeadSizes> HEADS =
      Vector.of(
          HeadSizes.exactly(64),
          HeadSizes.exactly(80, 96),
          HeadSizes.multiplesOf(16, 32, 256),
          HeadSizes.multiplesOf(8, 8, 128));
  private static final Seq<BlockSizes> BLOCKS =
      Vector.of(
          BlockSizes.exactly(16),
          BlockSizes.exactly(32, 64),
          BlockSizes.multiplesOf(16),
          BlockSizes.multiplesOf(24));
  private static final Seq<DeviceSupport> DEVICES =
      Vector.of(
          DeviceSupport.on(Platform.CPU),
          DeviceSupport.on(Platform.ROCM, Platform.XPU),
          DeviceSupport.cuda(Range.majors(8, 9)),
          DeviceSupport.cuda(Range.majors(9, 10)));

  private record Accepted(Set<Object> what) {}

  /** Between little and nearly everything, so that some pairs can be composed and some cannot. */
  private static FeatureSet random(Random random) {
    FeatureSet features = FeatureSet.NONE;
    for (int i = 10 + random.nextInt(50); i > 0; i--) {
      features = features.union(one(random));
    }
    return features;
  }

  /** One more thing that a backend can do. */
  private static FeatureSet one(Random random) {
    return switch (random.nextInt(9)) {
      case 0 -> FeatureSet.NONE.withDtypes(any(random, DType.FP16, DType.BF16));
      case 1 -> FeatureSet.NONE.withKvCacheDtypes(any(random, CACHES));
      case 2 -> FeatureSet.NONE.withBlockSizes(BLOCKS.get(random.nextInt(BLOCKS.size())));
      case 3 -> FeatureSet.NONE.withHeadSizes(HEADS.get(random.nextInt(HEADS.size())));
      case 4 -> FeatureSet.NONE.withTypes(any(random, AttentionType.values()));
      case 5 -> FeatureSet.NONE.withImageMasks(any(random, ImageMask.values()));
      case 6 -> FeatureSet.NONE.withKvLayouts(any(random, KvLayouts.NHD, KvLayouts.HND));
      case 7 -> FeatureSet.NONE.withDevices(DEVICES.get(random.nextInt(DEVICES.size())));
      default -> FeatureSet.NONE.withFeatures(ability(random));
    };
  }

  private static Feature ability(Random random) {
    Feature feature = any(random, Feature.values());
    return KINDS.contains(feature) ? Feature.SOFTCAP : feature;
  }

  @SafeVarargs
  private static <T> T any(Random random, T... values) {
    return values[random.nextInt(values.length)];
  }

  /** Everything that a composite of two backends accepts; nothing when it cannot be composed. */
  private static Accepted accepted(FeatureSet a, FeatureSet b) {
    return CompositeBackends.createCompositeBackend(
            new SummingBackend("A", new Journal()).with(a),
            new SummingBackend("B", new Journal()).with(b),
            FakePolicy.imagesToA())
        .fold(
            reasons -> new Accepted(LinkedHashSet.empty()),
            composite -> accepted(composite.capabilities().all()));
  }

  private static Accepted accepted(FeatureSet features) {
    Set<Object> what = LinkedHashSet.ofAll(features.dtypes());
    what = what.addAll(features.kvCacheDtypes());
    what = what.addAll(features.types());
    what = what.addAll(features.imageMasks());
    what = what.addAll(features.features());
    what = what.addAll(features.kvLayouts().map(KvLayout::name));
    for (int size = 1; size <= 256; size++) {
      what = features.headSizes().accepts(size) ? what.add("head " + size) : what;
      what = features.blockSizes().accepts(size) ? what.add("block " + size) : what;
    }
    for (DeviceProfile device : devices()) {
      what = features.devices().accepts(device) ? what.add(device) : what;
    }
    return new Accepted(what);
  }

  private static Seq<DeviceProfile> devices() {
    Seq<DeviceProfile> cuda =
        Vector.of(75, 80, 89, 90, 100, 120)
            .map(
                sm ->
                    new DeviceProfile.Cuda(
                        new ComputeCapability(sm / 10, sm % 10), HashSet.empty(), true));
    return cuda.append(new DeviceProfile.Cpu(DeviceProfile.CpuIsa.AVX2, HashSet.empty(), true))
        .append(new DeviceProfile.Rocm("gfx942", HashSet.empty(), true))
        .append(new DeviceProfile.Xpu("max", HashSet.empty(), true));
  }

  @RepeatedTest(500)
  void addingACapabilityNeverShrinksWhatTheCompositeAccepts(RepetitionInfo repetition) {
    long seed = 31_000 + repetition.getCurrentRepetition();
    Random random = new Random(seed);
    FeatureSet a = random(random);
    FeatureSet b = random(random);
    FeatureSet more = one(random);
    Accepted before = accepted(a, b);

    assertThat(accepted(a.union(more), b).what())
        .as("seed %d, child A learns %s", seed, more)
        .containsAll(before.what());
    assertThat(accepted(a, b.union(more)).what())
        .as("seed %d, child B learns %s", seed, more)
        .containsAll(before.what());
  }

  @RepeatedTest(500)
  void aCompositeAcceptsNothingThatAChildDoesNot(RepetitionInfo repetition) {
    long seed = 32_000 + repetition.getCurrentRepetition();
    Random random = new Random(seed);
    FeatureSet a = random(random);
    FeatureSet b = random(random);
    Set<Object> together = accepted(a, b).what().filter(what -> !(what instanceof KvCacheDtype));

    assertThat(accepted(a).what()).as("seed %d", seed).containsAll(together);
    assertThat(accepted(b).what())
        .as("seed %d", seed)
        .containsAll(together.filter(what -> !(what instanceof ImageMask)));
  }

  @Test
  void manyOfTheRandomPairsCanBeComposedAndManyCannot() {
    Random random = new Random(33_000);
    int composed = 0;
    for (int pair = 0; pair < 200; pair++) {
      composed += accepted(random(random), random(random)).what().isEmpty() ? 0 : 1;
    }
    assertThat(composed).isBetween(40, 160);
  }
}

package bifocal.core.backend;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.DeviceSupport.Range;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvLayout;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.Platform;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.HashSet;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class FeatureSetTest {

  @Test
  void nothingDeclaredIsNothingSupported() {
    FeatureSet none = FeatureSet.NONE;
    assertThat(none.headSizes().accepts(64)).isFalse();
    assertThat(none.blockSizes().accepts(16)).isFalse();
    assertThat(none.devices().accepts(cuda(9, 0))).isFalse();
    assertThat(none.has(Feature.SOFTCAP)).isFalse();
    assertThat(none.kvLayouts().isEmpty() && none.types().isEmpty()).isTrue();
  }

  @Test
  void extensionsAddPropertyByProperty() {
    Capabilities capabilities =
        new Capabilities(
            StubBackend.PLAIN.withDevices(DeviceSupport.cuda(Range.majors(9, 9))),
            FeatureSet.NONE
                .withDtypes(DType.FP32)
                .withHeadSizes(HeadSizes.exactly(512))
                .withImageMasks(ImageMask.CLAMP_PAST)
                .withFeatures(Feature.SINK)
                .withKvLayouts(KvLayouts.HND, KvLayouts.NHD)
                .withDevices(DeviceSupport.cuda(Range.exactly(12, 0))));
    FeatureSet all = capabilities.all();
    assertThat(all.dtypes()).containsExactlyInAnyOrder(DType.FP16, DType.BF16, DType.FP32);
    assertThat(all.headSizes()).hasToString("64, 128, 512");
    assertThat(all.imageMasks()).containsExactly(ImageMask.CLAMP_PAST);
    assertThat(all.has(Feature.SINK)).isTrue();
    assertThat(all.kvLayouts().map(KvLayout::name)).containsExactly("NHD", "HND");
    assertThat(all.devices().accepts(cuda(12, 0)) && all.devices().accepts(cuda(9, 0))).isTrue();
    assertThat(all.devices().accepts(cuda(12, 1))).isFalse();
    assertThat(all.blockSizes()).isEqualTo(BlockSizes.multiplesOf(16));
  }

  @Test
  void extensionsWithoutDevicesRunWhereTheReferenceDoes() {
    FeatureSet all =
        StubBackend.PLAIN
            .withDevices(DeviceSupport.on(Platform.CPU))
            .union(FeatureSet.NONE.withFeatures(Feature.SINK));
    assertThat(all.devices()).isEqualTo(DeviceSupport.on(Platform.CPU));
  }

  @ParameterizedTest
  @CsvSource({"7, 5, false", "8, 0, true", "9, 9, true", "10, 3, true", "11, 0, false"})
  void capabilitiesLieInRanges(int major, int minor, boolean accepted) {
    DeviceSupport support = DeviceSupport.cuda(Range.majors(8, 9), Range.majors(10, 10));
    assertThat(support.accepts(cuda(major, minor))).isEqualTo(accepted);
  }

  @Test
  void devicesOfOtherPlatformsAreNotAccepted() {
    DeviceProfile cpu = new DeviceProfile.Cpu(DeviceProfile.CpuIsa.AVX2, HashSet.empty(), true);
    DeviceProfile rocm = new DeviceProfile.Rocm("gfx942", HashSet.empty(), true);
    assertThat(DeviceSupport.cuda(Range.from(8, 0)).accepts(cpu)).isFalse();
    assertThat(DeviceSupport.on(Platform.ROCM, Platform.CPU).accepts(rocm)).isTrue();
    assertThat(DeviceSupport.on(Platform.CUDA).accepts(cuda(5, 2))).isTrue();
  }

  @Test
  void devicesReadAsPeopleWriteThem() {
    assertThat(DeviceSupport.cuda(Range.from(8, 9), Range.exactly(7, 5)))
        .hasToString("cuda >=8.9, 7.5");
    assertThat(DeviceSupport.cuda(Range.majors(8, 9), Range.majors(12, 12)))
        .hasToString("cuda 8.x-9.x, 12.x");
    assertThat(DeviceSupport.on(Platform.ROCM, Platform.CPU)).hasToString("cpu, rocm");
    assertThat(DeviceSupport.on()).hasToString("none");
    assertThat(new DeviceProfile.Rocm("gfx942", HashSet.empty(), true).label())
        .isEqualTo("rocm gfx942");
    assertThat(new DeviceProfile.Xpu("bmg", HashSet.empty(), true).label()).isEqualTo("xpu bmg");
  }

  @Test
  void headSizesMeetWhereBothRun() {
    HeadSizes tiles = HeadSizes.multiplesOf(32, 32, 512);
    HeadSizes wide = HeadSizes.multiplesOf(48, 1, 256);
    assertThat(tiles.intersect(wide)).hasToString("%96 in 32..256");
    assertThat(tiles.intersect(HeadSizes.exactly(64, 80, 512))).hasToString("64, 512");
    assertThat(tiles.intersect(HeadSizes.multiplesOf(8, 600, 700))).hasToString("none");
    assertThat(HeadSizes.ANY.intersect(tiles)).isEqualTo(tiles);
    assertThat(HeadSizes.ANY).hasToString("Any");
    assertThat(HeadSizes.multiplesOf(1, 32, Integer.MAX_VALUE)).hasToString(">=32");
    int large = Integer.MAX_VALUE - 1;
    assertThat(
            HeadSizes.multiplesOf(large, large, large + 1)
                .intersect(HeadSizes.multiplesOf(large - 1, 1, large + 1)))
        .hasToString("none");
  }

  @ParameterizedTest
  @CsvSource({"0, 1, 2", "-8, 1, 2", "8, 0, 2", "8, 64, 32"})
  void headSizeRulesThatCannotBeAreRefused(int base, int least, int most) {
    assertRefused(ErrorCode.INVALID_PARAMETER, () -> HeadSizes.multiplesOf(base, least, most));
  }

  private static DeviceProfile cuda(int major, int minor) {
    return new DeviceProfile.Cuda(new ComputeCapability(major, minor), HashSet.empty(), true);
  }
}

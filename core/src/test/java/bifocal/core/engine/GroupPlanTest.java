package bifocal.core.engine;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.StubBackend;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.control.Validation;
import org.junit.jupiter.api.Test;

class GroupPlanTest {
  private static final DeviceProfile CPU =
      new DeviceProfile.Cpu(DeviceProfile.CpuIsa.AVX2, LinkedHashSet.empty(), true);
  private static final StubBackend BACKEND = new StubBackend("PLAIN", StubBackend.PLAIN);

  @Test
  void aBackendThatTheHostNamesIsCheckedAndItsCacheAgreed() {
    Validation<Seq<InvalidReason>, GroupPlan> plan = plan(64, 32);

    assertThat(plan.get().backend()).isSameAs(BACKEND);
    assertThat(plan.get().cache().layout()).isSameAs(KvLayouts.NHD);
    assertThat(plan.get().cache().dtype()).isEqualTo(KvCacheDtype.BFLOAT16);
    assertThat(plan.get().cache().blockSize()).isEqualTo(32);
  }

  @Test
  void aLayerThatTheBackendDoesNotServeIsRefusedWithEveryReason() {
    Validation<Seq<InvalidReason>, GroupPlan> plan = plan(80, 24);

    assertThat(plan.isInvalid()).isTrue();
    assertThat(plan.getError().map(InvalidReason::text))
        .anyMatch(text -> text.contains("head_size"))
        .anyMatch(text -> text.contains("block_size"));
  }

  private static Validation<Seq<InvalidReason>, GroupPlan> plan(int headSize, int blockSize) {
    AttentionLayerSpec layer =
        AttentionLayerSpec.Dense.decoder(4, 2, headSize, DType.BF16, AttentionMask.CAUSAL);
    return GroupPlan.of(
        LayerGroup.of("full", layer),
        BACKEND,
        AttentionRequest.of(layer, CPU).withBlockSize(blockSize));
  }
}

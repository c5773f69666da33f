package bifocal.cpu.kernel;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendValidator;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import io.vavr.collection.HashSet;
import org.junit.jupiter.api.Test;

/** A head size that passes validation is served by a way through the kernels, and no other is. */
final class HeadPathTest {
  private static final CpuRuntime RUNTIME = CpuRuntime.ofThisJvm();

  @Test
  void validationAndDispatchAgreeOnEveryHeadSize() {
    DeviceProfile host = new DeviceProfile.Cpu(DeviceProfile.CpuIsa.AVX2, HashSet.empty(), false);
    BackendValidator validator = new BackendValidator(BackendValidator.Scope.EXECUTION);
    for (int size = 1; size <= 1100; size++) {
      AttentionRequest request =
          AttentionRequest.of(
              AttentionLayerSpec.Dense.decoder(2, 1, size, DType.BF16, AttentionMask.CAUSAL), host);
      boolean served = HeadPath.of(size, size).isDefined();
      assertThat(validator.validate(new CpuAttnBackend(RUNTIME), request).isValid())
          .as("CPU_ATTN, head size %d", size)
          .isEqualTo(served);
      assertThat(validator.validate(new FlexAttentionBackend(RUNTIME), request).isValid())
          .as("FLEX_ATTENTION, head size %d", size)
          .isEqualTo(served);
    }
  }

  @Test
  void sizesGoTheWidestWay() {
    for (int size : new int[] {48, 80, 112, 256, 512}) {
      assertThat(HeadPath.of(size, size).get()).as("%d", size).isEqualTo(HeadPath.WIDE);
    }
    assertThat(HeadPath.of(72, 72).get()).isEqualTo(HeadPath.PADDED);
    assertThat(HeadPath.of(64, 72).get()).isEqualTo(HeadPath.PADDED);
    assertThat(HeadPath.of(33, 33).isEmpty()).isTrue();
  }
}

package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.host.Finding;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaProbe;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.pack.KernelPack;
import io.vavr.collection.Vector;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What the doctor says of kernel packs. */
class KernelPackCheckTest {
  private static final BifocalException WHY =
      BifocalException.of(ErrorCode.NATIVE_MISSING, "kernel packs", "none named", "a directory")
          .withRemedy("name one");

  @Test
  void withoutADeviceNothingIsSaid() {
    KernelPackCheck check =
        new KernelPackCheck(TritonHost.without(WHY), () -> new CudaProbe.Absent(WHY));

    assertThat(check.findings()).isEmpty();
  }

  @Test
  void deviceWithoutAPackIsTold() {
    FakeCuda fake = FakeCuda.resetOrSkip();
    try (CudaContext context = CudaContext.primary(fake.driver(), 0)) {
      Finding finding =
          new KernelPackCheck(TritonHost.without(WHY), () -> present(context)).findings().head();

      assertThat(finding.status()).isEqualTo(Finding.Status.LIMITED);
      assertThat(finding.seen()).isEqualTo("kernel packs: none named, wanted a directory");
      assertThat(finding.remedy()).containsExactly("name one");
    }
  }

  @Test
  void packIsNamedWithItsKernelsAndCompiler(@TempDir Path packs) {
    FakeCuda fake = FakeCuda.resetOrSkip();
    TritonEmulatedTest.pack(packs);
    try (CudaContext context = CudaContext.primary(fake.driver(), 0)) {
      KernelPack pack = KernelPack.open(packs, context.device().capability()).get();
      try (TritonDevice device = TritonDevice.of(context, pack)) {
        Finding finding =
            new KernelPackCheck(TritonHost.with(device), () -> present(context)).findings().head();

        assertThat(finding.status()).isEqualTo(Finding.Status.GOOD);
        assertThat(finding.seen())
            .contains(pack.directory() + ": " + pack.manifest().kernels().size() + " kernels")
            .contains("sm_90, Triton 0.0.0");
      }
    }
  }

  private static CudaProbe present(CudaContext context) {
    return new CudaProbe.Present(context.driver(), Vector.of(context.device()));
  }
}

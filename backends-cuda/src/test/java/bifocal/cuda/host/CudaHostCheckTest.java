package bifocal.cuda.host;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.host.Finding;
import bifocal.core.host.Finding.Status;
import bifocal.core.host.HostFiles;
import bifocal.cuda.driver.CudaProbe;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CudaHostCheckTest {
  @TempDir private Path root;

  @Test
  void aHostWithoutADriverLacksNothing() {
    Finding finding = finding(false);

    assertThat(finding.status()).isEqualTo(Status.ABSENT);
    assertThat(finding.seen()).contains("libcuda.so.1").doesNotContain("install it");
    assertThat(finding.remedy()).containsExactly("install it");
  }

  @Test
  void aDriverThatWasNamedMustBeThere() {
    assertThat(finding(true).status()).isEqualTo(Status.FAILED);
  }

  @Test
  void aKernelWithADriverWhoseLibraryIsMissingIsAContainerWithoutIt() throws IOException {
    Files.createDirectories(root.resolve("proc/driver/nvidia"));
    Files.writeString(root.resolve("proc/driver/nvidia/version"), "NVRM version: 999.1\nGCC 12\n");
    Finding finding = finding(false);

    assertThat(finding.status()).isEqualTo(Status.LIMITED);
    assertThat(finding.seen()).contains("NVRM version: 999.1").doesNotContain("GCC");
    assertThat(finding.remedy().get()).contains("in a container");
  }

  @Test
  void thisHostIsLookedAt() {
    assertThat(CudaHostCheck.ofThisHost().findings()).hasSize(1);
  }

  private Finding finding(boolean named) {
    CudaProbe absent =
        new CudaProbe.Absent(
            BifocalException.of(
                    ErrorCode.NATIVE_MISSING, "libcuda.so.1 was not found", "none", "one")
                .withRemedy("install it"));
    return new CudaHostCheck(new HostFiles(root), () -> absent, named).findings().head();
  }
}

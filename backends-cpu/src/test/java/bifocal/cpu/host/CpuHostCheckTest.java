package bifocal.cpu.host;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.host.Finding;
import bifocal.core.host.Finding.Status;
import bifocal.core.host.HostFiles;
import bifocal.cpu.attention.KernelChoice;
import io.vavr.control.Option;
import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Supplier;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class CpuHostCheckTest {
  private static final Tools ALL = name -> Option.some(name + " 1.0");
  private static final Supplier<KernelChoice> SCALAR =
      () -> new KernelChoice(KernelChoice.scalar(), "a test");

  @TempDir private Path root;

  @BeforeEach
  void describeAHost() throws IOException {
    write("proc/cpuinfo", "model name\t: Some Processor\nflags\t\t: fpu avx2 avx512f\n");
    write("proc/self/status", "Cpus_allowed_list:\t0-7\n");
    write("proc/self/cgroup", "0::/job\n");
    write("sys/fs/cgroup/job/cpu.max", "765000 100000\n");
  }

  @Test
  void processorAndThreadsAreReadFromTheHostsFiles() {
    assertThat(finding("processor", check(ALL)).seen()).isEqualTo("Some Processor, avx512f");
    assertThat(finding("threads", check(ALL)))
        .isEqualTo(
            Finding.good(
                "threads",
                "7 threads: cgroup quota of 7.65 CPUs, rounded down; affinity allows 8"));
  }

  @Test
  void whatComputesIsSaid() {
    assertThat(finding("kernels", check(ALL)).seen()).isEqualTo("the CPU backends run on scalar");
    assertThat(finding("C kernels", check(ALL)))
        .isEqualTo(Finding.good("C kernels", "native-amx, a test's library"));
  }

  @Test
  void resultsDependOnThreadsAndKernels() {
    assertThat(check(ALL).conditions().map(Finding::topic)).containsExactly("threads", "kernels");
  }

  @Test
  void withoutACompilerTheRemedyIsToInstallOne() {
    CpuHostCheck check =
        check(
            name -> Option.when(name.equals("make"), "make 1.0"),
            refusing(ErrorCode.NATIVE_MISSING, "build it"));

    assertThat(finding("compiler", check).status()).isEqualTo(Status.ABSENT);
    assertThat(finding("compiler", check).seen()).isEqualTo("no cc on the path");
    assertThat(finding("C kernels", check).status()).isEqualTo(Status.LIMITED);
    assertThat(finding("C kernels", check).remedy().get()).startsWith("install make and gcc");
  }

  @Test
  void withACompilerTheRemedyIsTheOneOfTheRefusalAndIsSaidOnce() {
    Finding kernels =
        finding("C kernels", check(ALL, refusing(ErrorCode.NATIVE_MISSING, "unset it")));

    assertThat(kernels.remedy()).containsExactly("unset it");
    assertThat(kernels.seen()).contains("a library").doesNotContain("unset it");
  }

  @Test
  void aSystemWithoutCKernelsLacksNothing() {
    Finding kernels =
        finding(
            "C kernels", check(ALL, refusing(ErrorCode.NATIVE_MISSING, "build it"), "Windows 11"));

    assertThat(kernels.status()).isEqualTo(Status.ABSENT);
    assertThat(kernels.remedy().get()).contains("Java kernels");
  }

  @Test
  void aSettingThatCannotBeFollowedIsAFailure() {
    CpuHostCheck check =
        new CpuHostCheck(
            new HostFiles(root),
            Option.some("many"),
            new CpuHostCheck.Kernels(
                () -> {
                  throw BifocalException.of(ErrorCode.INVALID_OPTION, "kernels", "x", "scalar");
                },
                () -> "native",
                () -> "vector"),
            ALL,
            "Linux");

    assertThat(finding("threads", check).status()).isEqualTo(Status.FAILED);
    assertThat(finding("threads", check).remedy()).containsExactly("unset -Dbifocal.cpu.threads");
    assertThat(finding("kernels", check).status()).isEqualTo(Status.FAILED);
    assertThat(finding("kernels", check).remedy()).containsExactly("unset -Dbifocal.cpu.kernels");
  }

  @Test
  void thisHostIsDescribedWhateverItIs() {
    assertThat(CpuHostCheck.ofThisHost().findings())
        .hasSize(6)
        .allSatisfy(finding -> assertThat(finding.seen()).isNotBlank());
  }

  @Test
  void aProgramIsFoundOnThePath() throws IOException {
    Path program = root.resolve("tool");
    Files.writeString(program, "#!/bin/sh\necho tool 7\n");
    String path = root.resolve("nowhere") + File.pathSeparator + root;

    assertThat(program.toFile().setExecutable(true)).isTrue();
    assertThat(Tools.file("other", path)).isEmpty();
    assertThat(Tools.file("tool", path)).containsExactly(program);
  }

  private CpuHostCheck check(Tools tools) {
    return check(tools, () -> "native-amx, a test's library");
  }

  private CpuHostCheck check(Tools tools, Supplier<String> inC) {
    return check(tools, inC, "Linux");
  }

  private CpuHostCheck check(Tools tools, Supplier<String> inC, String system) {
    return new CpuHostCheck(
        new HostFiles(root),
        Option.none(),
        new CpuHostCheck.Kernels(SCALAR, inC, () -> "vector-512"),
        tools,
        system);
  }

  private static Supplier<String> refusing(ErrorCode code, String remedy) {
    return () -> {
      throw BifocalException.of(code, "a library", "none", "one").withRemedy(remedy);
    };
  }

  private static Finding finding(String topic, CpuHostCheck check) {
    return check.findings().find(finding -> finding.topic().equals(topic)).get();
  }

  private void write(String file, String text) throws IOException {
    Files.createDirectories(root.resolve(file).getParent());
    Files.writeString(root.resolve(file), text);
  }
}

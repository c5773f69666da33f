package bifocal.benchmarks;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;
import org.junit.jupiter.api.extension.ExtendWith;

/** What a process keeps of its steps. */
@EnabledOnOs(OS.LINUX)
@ExtendWith(NeedsCpu.class)
final class ResidentMemoryTest {
  private static final int STEPS = 10_000;

  /** 1.6 KiB a step; what a step builds is several times that. */
  private static final long MOST_GROWTH = 16L << 20;

  @Test
  void tenThousandStepsLeaveResidentMemoryAsItWas() throws IOException {
    try (StepScene<?> scene = StepScene.of("FLEX_CPU_ATTN", StepScene.Batch.DECODE)) {
      run(scene);
      long before = residentBytes();

      run(scene);

      assertThat(residentBytes() - before).isLessThan(MOST_GROWTH);
    }
  }

  private static void run(StepScene<?> scene) {
    for (int i = 0; i < STEPS; i++) {
      scene.build();
      scene.forward();
    }
    System.gc();
  }

  private static long residentBytes() throws IOException {
    try (var lines = Files.lines(Path.of("/proc/self/status"))) {
      String line = lines.filter(l -> l.startsWith("VmRSS:")).findFirst().orElseThrow();
      return Long.parseLong(line.replaceAll("\\D", "")) << 10;
    }
  }
}

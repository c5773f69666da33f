package bifocal.benchmarks.cpu;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.benchmarks.cpu.Work.Request;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import org.junit.jupiter.api.Test;

final class WorkTest {
  private static double pairs(Work work) {
    return work.amount() / (4.0 * work.headSize() * Work.HEADS);
  }

  @Test
  void aChunkSeesItsContextAndItself() {
    Work work = Work.prompts("chunk", DType.BF16, 64, new Request(3, 10));

    assertThat(pairs(work)).isEqualTo(8 + 9 + 10);
  }

  @Test
  void aWindowCountsTheQueryItself() {
    Work work =
        Work.prompts("window", DType.BF16, 64, Request.prompt(5))
            .withMask(AttentionMask.CAUSAL.withWindow(2));

    assertThat(pairs(work)).isEqualTo(1 + 2 + 2 + 2 + 2);
  }

  @Test
  void anImageSeesItsEnd() {
    Work work =
        Work.prompts("image", DType.BF16, 64, new Request(5, 5, 1, 3))
            .withMask(AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE));

    assertThat(pairs(work)).isEqualTo(1 + 4 + 4 + 4 + 5);
  }

  @Test
  void decodesCountTheBytesOfTheirCache() {
    Work work = Work.decodes("decodes", DType.BF16, 3, 100);

    assertThat(work.amount()).isEqualTo(3.0 * 100 * 2 * 2 * 128 * 2);
    assertThat(work.withCache(KvCacheDtype.FP8_E5M2).amount()).isEqualTo(work.amount() / 2);
  }
}

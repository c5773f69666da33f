package bifocal.benchmarks.cpu;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.benchmarks.cpu.Work.Request;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

final class ContendersTest {
  private static final AttentionMask IMAGES = AttentionMask.CAUSAL.withImages(ImageMask.OVERRIDE);

  static Stream<Work> works() {
    return Stream.of(
        Work.prompts("prompt", DType.FP32, 64, Request.prompt(80)),
        Work.prompts("chunk", DType.BF16, 128, Request.decode(70), new Request(20, 90)),
        Work.prompts("images", DType.BF16, 64, new Request(90, 90, 10, 40)).withMask(IMAGES),
        Work.decodes("decodes", DType.BF16, 3, 100),
        Work.decodes("narrow", DType.BF16, 2, 70).withCache(KvCacheDtype.FP8_E4M3));
  }

  @ParameterizedTest
  @MethodSource("works")
  void kernelsAgreeOnOneAndOnTwoThreads(Work work) {
    Contenders contenders = new Contenders(Option.none());
    try (Scene scene = contenders.scene(work)) {
      Seq<Contender> all =
          contenders.of(scene, 1, true, true).appendAll(contenders.of(scene, 2, true, true));
      all.forEach(Contender::run);

      assertThat(all.size()).isGreaterThan(1);
      assertThat(Agreement.require(work, all)).isLessThan(2.4e-2);
      all.forEach(Contender::close);
    }
  }

  @Test
  void anOutputThatDiffersIsRefusedBeforeItIsTimed() {
    Work work = Work.prompts("prompt", DType.FP32, 64, Request.prompt(40));
    Contender right = new Fixed("right", 1);

    assertThatThrownBy(() -> Agreement.require(work, Vector.of(right, new Fixed("off", 1.01f))))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("off against right");
    assertThatThrownBy(() -> Agreement.require(work, Vector.of(right, new Fixed("no", Float.NaN))))
        .isInstanceOf(BifocalException.class);
    assertThat(Agreement.require(work, Vector.of(right, new Fixed("same", 1)))).isZero();
  }

  /** Whose outputs are all the same number. */
  private record Fixed(String name, float value) implements Contender {
    @Override
    public void run() {}

    @Override
    public void read(int token, int head, float[] values) {
      java.util.Arrays.fill(values, value);
    }

    @Override
    public void close() {}
  }
}

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

  @Test
  void outputsThatShareMemoryAreComparedAllTheSame() {
    Work work = Work.prompts("prompt", DType.FP32, 64, Request.prompt(40));
    float[] shared = new float[1];
    Contender right = new Sharing("right", 1, shared);

    assertThatThrownBy(
            () -> Agreement.require(work, Vector.of(right, new Sharing("off", 1.01f, shared))))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("off against right");
    assertThat(Agreement.require(work, Vector.of(right, new Sharing("same", 1, shared)))).isZero();
  }

  @Test
  void routesAndChildrenThatTakeTurnsShareOneRoom() {
    Work work =
        Work.prompts("images", DType.BF16, 64, new Request(90, 90, 10, 40)).withMask(IMAGES);
    Contenders contenders = new Contenders(Option.none());
    try (Scene scene = contenders.scene(work)) {
      Seq<Contender> all =
          Room.of(contenders.routes(scene, 1).appendAll(contenders.children(scene, 1)));
      float[] first = new float[64];
      float[] again = new float[64];

      for (Contender contender : all) {
        contender.run();
        contender.read(80, 7, first);
        all.head().read(80, 7, again);
        assertThat(again).as(contender.name()).containsExactly(first);
      }

      assertThat(Agreement.require(work, all)).isLessThan(2.4e-2);
      all.forEach(Contender::close);
    }
  }

  /** Whose outputs lie where another's do. */
  private record Sharing(String name, float value, float[] output) implements Contender {
    @Override
    public void run() {
      output[0] = value;
    }

    @Override
    public void read(int token, int head, float[] values) {
      java.util.Arrays.fill(values, output[0]);
    }

    @Override
    public void close() {}
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

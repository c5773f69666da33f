package bifocal.benchmarks;

import bifocal.core.backend.AttentionMetadata;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/**
 * One step of a composite: metadata once, attention of one layer. With {@code -prof gc} it shows
 * what a step allocates.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(
    value = 1,
    jvmArgsAppend = {
      "--add-modules=jdk.incubator.vector",
      "--enable-native-access=ALL-UNNAMED",
      "-Dguice_custom_class_loading=CHILD"
    })
public class CompositeStepBenchmark {
  @Param({"FLEX_CPU_ATTN"})
  public String backend = "";

  @Param({"DECODE", "MIXED", "IMAGES"})
  public StepScene.Batch batch = StepScene.Batch.DECODE;

  @SuppressWarnings("NullAway.Init") // JMH opens the scene before it measures
  private StepScene<?> scene;

  @Setup
  public void open() {
    scene = StepScene.of(backend, batch);
  }

  @TearDown
  public void close() {
    scene.close();
  }

  /** Routing and the children's metadata. */
  @Benchmark
  public AttentionMetadata build() {
    return scene.build();
  }

  /** Attention of one layer. */
  @Benchmark
  public MemorySegment forward() {
    return scene.forward();
  }
}

package bifocal.cuda.driver;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import bifocal.core.backend.AttentionObserver;
import bifocal.core.engine.GraphCapture.CapturedGraph;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.memory.CudaMemory;
import bifocal.cuda.memory.MetadataStaging;
import bifocal.cuda.memory.PinnedBlock;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import java.util.function.Function;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** What the device may still be using is given back when the device is done with it. */
final class CloseUnderWorkTest {
  private final FakeCuda fake = FakeCuda.resetOrSkip();

  private static Map<String, Function<CudaStream, AutoCloseable>> parts() {
    return LinkedHashMap.of(
        "device memory",
        stream -> DeviceAllocation.allocate(stream.context(), "cache", 4096),
        "memory of a pool",
        stream -> CudaMemory.pooled(stream, 1 << 20).acquire("cache", 4096),
        "a memory pool",
        stream -> CudaPool.create(stream.context()),
        "pinned memory",
        stream -> PinnedBlock.allocate(stream.context(), "pinned", 64),
        "staging with a copy under way",
        CloseUnderWorkTest::staging,
        "kernels",
        stream -> CudaLibrary.load(stream.context(), "attention", Scenario.IMAGE),
        "a stream",
        stream -> CudaStream.create(stream.context()),
        "a stream with a queue beside it",
        CloseUnderWorkTest::forked,
        "a captured graph",
        CloseUnderWorkTest::graph);
  }

  private static MetadataStaging staging(CudaStream stream) {
    MetadataStaging staging = new MetadataStaging(stream.context(), 256, 2);
    try (DeviceAllocation target = DeviceAllocation.allocate(stream.context(), "target", 256)) {
      staging.take().upload(stream, target.segment());
    }
    return staging;
  }

  private static CudaStream forked(CudaStream stream) {
    CudaStream forked = CudaStream.create(stream.context());
    forked.fork().close();
    return forked;
  }

  private static CapturedGraph graph(CudaStream stream) {
    CudaLaunchContext launch = new CudaLaunchContext(stream, AttentionObserver.NONE);
    return new CudaGraphCapture().capture(launch, () -> {});
  }

  @TestFactory
  Stream<DynamicTest> isWaitedFor() {
    return parts().map(part -> dynamicTest(part._1, () -> closesUnderWork(part._2))).toJavaStream();
  }

  private void closesUnderWork(Function<CudaStream, AutoCloseable> make) throws Exception {
    fake.reset();
    CudaContext context = CudaContext.primary(fake.driver(), 0);
    CudaStream stream = CudaStream.create(context);
    AutoCloseable part = make.apply(stream);

    fake.busy(true);
    part.close();

    assertThat(fake.early()).as("given back while the device was busy").isZero();
    assertThat(context.open()).as("open in the context").doesNotContain("cache", "pinned", "graph");
  }
}

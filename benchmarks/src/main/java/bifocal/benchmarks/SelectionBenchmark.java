package bifocal.benchmarks;

import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.Platform;
import bifocal.core.layer.LayerGroup;
import bifocal.core.model.ModelCatalog;
import bifocal.core.select.DeviceDescription;
import bifocal.core.select.ModelTraits;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import bifocal.core.select.Selector;
import bifocal.core.tensor.DType;
import io.vavr.collection.LinkedHashSet;
import io.vavr.control.Option;
import io.vavr.control.Validation;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * One selection for a layer of a multimodal model, on a simulated processor of this platform set:
 * asked for again, and asked for the first time.
 */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.MICROSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@Fork(1)
public class SelectionBenchmark {
  private Selector selector = selector();
  private SelectionRequest request = request(selector);
  private int asked;

  /** Makes the selector and a request. */
  @Setup
  public void prepare() {
    selector = selector();
    request = request(selector);
  }

  private static Selector selector() {
    return BifocalInjector.create(PlatformModules.detect().present()).getInstance(Selector.class);
  }

  private static SelectionRequest request(Selector selector) {
    Platform platform = selector.policies().head().platform();
    DeviceDescription device =
        new DeviceDescription(Option.none(), Option.none(), Option.none(), LinkedHashSet.empty());
    return ModelCatalog.shipped()
        .find("gemma-4-31b")
        .map(
            model -> {
              LayerGroup sliding = model.denseGroups(DType.BF16, KvCacheDtype.AUTO, 1).head();
              return SelectionRequest.of(sliding.spec(), selector.policy(platform).simulate(device))
                  .with(ModelTraits.of(model));
            })
        .get();
  }

  /** A request that was asked before. */
  @Benchmark
  public Validation<SelectionRefusal, SelectionReport> again() {
    return selector.select(request);
  }

  /** A request that was never asked before: its layer has a scale of its own. */
  @Benchmark
  public Validation<SelectionRefusal, SelectionReport> first() {
    asked++;
    return selector.select(Scales.scaled(request, asked));
  }
}

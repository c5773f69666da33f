package bifocal.cli.replay;

import bifocal.cli.backend.RunDevice;
import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.cli.replay.StepCheck.Sample;
import bifocal.cli.replay.StepRecord.Check;
import bifocal.composite.CompositeMetadata;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionImpl;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionMetadataBuilder;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.StepContext;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.cache.KvBlocks;
import bifocal.core.cache.KvCacheView;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.route.Route;
import bifocal.core.tensor.TensorView;
import bifocal.reference.shadow.ShadowMetadata;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;

/**
 * One layer group over one backend: a builder, an implementation for each layer, and what came out.
 *
 * @param <M> the backend's metadata
 */
final class GroupRun<M extends AttentionMetadata> implements AutoCloseable {
  private final AttentionBackend<M> backend;
  private final LayerGroup group;
  private final GroupInputs inputs;
  private final StepCheck check;
  private final Seq<KvCacheView> caches;
  private final AttentionMetadataBuilder<M> builder;
  private final List<AttentionImpl<M>> impls = new ArrayList<>();
  private final OutputReader outputs;
  private final Checksum checksum;
  private final Inspection inspection;
  private final RunDevice device;
  private final GroupInputs.OnDevice tensors;

  GroupRun(
      AttentionBackend<M> backend,
      LayerGroup group,
      GroupInputs inputs,
      KvBlocks blocks,
      long seed,
      Inspection inspection,
      RunDevice device) {
    this.backend = backend;
    this.device = device;
    this.tensors = inputs.onDevice(device);
    this.inspection = inspection;
    this.group = group;
    this.inputs = inputs;
    this.check = new StepCheck(inputs, seed);
    this.caches = group.layers().map(blocks::view);
    this.builder = backend.createBuilder(group, blocks.spec());
    try {
      for (int layer = 0; layer < group.layers().size(); layer++) {
        impls.add(backend.createImpl(group.spec(), LayerParameters.NONE, blocks.spec()));
      }
    } catch (RuntimeException | Error e) {
      close();
      throw e;
    }
    this.outputs = new OutputReader(inputs.layer().headSizeV());
    this.checksum = new Checksum(seed, inputs.layer().headSizeV());
  }

  LayerGroup group() {
    return group;
  }

  Checksum checksum() {
    return checksum;
  }

  /** Builds, writes and computes one step, and compares a part of it with the reference. */
  StepRecord run(
      StepContext context, Seq<Scheduled> requests, CommonAttentionMetadata batch, Times times) {
    times.take();
    long start = System.nanoTime();
    M metadata = builder.build(context, group, batch);
    long build = System.nanoTime() - start - shadowNanos(metadata);
    Option<Route> route = route(metadata);
    long write = 0;
    long forward = 0;
    Seq<Check> checks = Vector.empty();
    TensorView out = inputs.output(batch.tokens());
    TensorView written = tensors.output(batch.tokens());
    for (int layer = 0; layer < impls.size(); layer++) {
      inputs.fill(layer, requests);
      tensors.upload(device, batch.tokens());
      AttentionImpl<M> impl = impls.get(layer);
      KvCacheView cache = caches.get(layer);
      long began = System.nanoTime();
      impl.writeKv(context.launch(), tensors.keyValues(batch.tokens()), cache, batch.slots());
      device.synchronize();
      long wrote = System.nanoTime();
      device.fill(written, OutputReader.POISON);
      device.synchronize();
      int running = layer;
      inspection
          .shadow()
          .forEach(shadow -> shadow.enter(running, requests.map(r -> r.request().index())));
      long ready = System.nanoTime();
      impl.forward(
          context.launch(),
          tensors.queries(batch.tokens()),
          cache,
          metadata,
          AttentionOutput.of(written));
      device.synchronize();
      forward += System.nanoTime() - ready;
      forward -= inspection.shadow().map(ShadowRecorder::takeNanos).getOrElse(0L);
      write += wrote - began;
      device.download(written, out);
      capture((int) context.step(), layer, batch, route);
      addToChecksum(layer, requests, out);
      Seq<Sample> samples = check.sample((int) context.step(), layer, requests, batch, route);
      checks = checks.appendAll(samples.map(sample -> sample.against(out)));
    }
    return new StepRecord(
        (int) context.step(),
        group.name(),
        backend.name(),
        requests,
        route,
        build,
        write,
        forward,
        timesOr(times.take(), forward),
        checks);
  }

  private static long shadowNanos(AttentionMetadata metadata) {
    return metadata instanceof ShadowMetadata<?, ?> shadowed ? shadowed.shadowNanos() : 0;
  }

  private static Option<Route> route(AttentionMetadata metadata) {
    return switch (metadata) {
      case CompositeMetadata<?, ?> composite -> Option.some(composite.route());
      case ShadowMetadata<?, ?> shadowed -> route(shadowed.primary());
      default -> Option.none();
    };
  }

  private void capture(int step, int layer, CommonAttentionMetadata batch, Option<Route> route) {
    inspection
        .capture()
        .filter(capture -> capture.step() == step)
        .forEach(
            capture ->
                capture.take(
                    backend,
                    group,
                    layer,
                    batch,
                    route,
                    inputs.queries(batch.tokens()),
                    caches.get(layer)));
  }

  /** What each child took; of a backend without children, what it took itself. */
  private Map<BackendName, Long> timesOr(Map<BackendName, Long> byChild, long forward) {
    return byChild.isEmpty() ? LinkedHashMap.of(backend.name(), forward) : byChild;
  }

  private void addToChecksum(int layer, Seq<Scheduled> requests, TensorView out) {
    int heads = inputs.layer().numHeads();
    int row = 0;
    for (Scheduled scheduled : requests) {
      for (int position = scheduled.first(); position < scheduled.seqLen(); position++) {
        for (int head = 0; head < heads; head++) {
          long name =
              (((long) scheduled.request().index() * group.layers().size() + layer) << 40)
                  | ((long) position << 12)
                  | head;
          checksum.add(outputs.read(out, row, head), inputs.layer().headSizeV(), name);
        }
        row++;
      }
    }
  }

  @Override
  public void close() {
    for (AttentionImpl<M> impl : impls) {
      impl.close();
    }
    builder.close();
  }
}

package bifocal.benchmarks.cpu;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.StepContext;
import bifocal.core.engine.GroupRuntime;
import bifocal.core.tensor.TensorView;

/**
 * One of our backends over the scene's cache. The step is built before; a run is one layer.
 *
 * @param <M> metadata of the backend
 */
final class BackendContender<M extends AttentionMetadata> implements Contender {
  private final String name;
  private final Scene scene;
  private final Room room;
  private final GroupRuntime<M> runtime;
  private final M metadata;
  private final TensorView out;
  private final AttentionOutput output;

  BackendContender(
      String name, Scene scene, AttentionBackend<M> backend, Room room, StepContext context) {
    this.name = name;
    this.scene = scene;
    this.room = room;
    this.runtime = GroupRuntime.open(backend, scene.group(), scene.spec());
    this.metadata = runtime.build(context, scene.batch());
    this.out = room.out();
    this.output = AttentionOutput.of(out);
  }

  @Override
  public String name() {
    return name;
  }

  @Override
  public void run() {
    runtime.forward(scene.launch(), 0, scene.q(), scene.cache(), metadata, output);
  }

  @Override
  public void read(int token, int head, float[] values) {
    for (int d = 0; d < values.length; d++) {
      values[d] =
          Numbers.read(
              out.data(), ((long) token * Work.HEADS + head) * values.length + d, out.dtype());
    }
  }

  @Override
  public void close() {
    runtime.close();
    room.leave();
  }
}

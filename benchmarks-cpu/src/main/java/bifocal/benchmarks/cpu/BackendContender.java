package bifocal.benchmarks.cpu;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionMetadata;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.engine.GroupRuntime;
import bifocal.core.ffi.HugePages;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import java.lang.foreign.MemorySegment;

/**
 * One of our backends over the scene's cache. The step is built before; a run is one layer.
 *
 * @param <M> metadata of the backend
 */
final class BackendContender<M extends AttentionMetadata> implements Contender {
  private final String name;
  private final Scene scene;
  private final Workspace workspace;
  private final Workspace.Step step;
  private final GroupRuntime<M> runtime;
  private final M metadata;
  private final TensorView out;
  private final AttentionOutput output;

  BackendContender(String name, Scene scene, AttentionBackend<M> backend) {
    this.name = name;
    this.scene = scene;
    Work work = scene.work();
    BatchLimits limits =
        new BatchLimits(work.requests().size(), work.queryTokens(), work.longest());
    WorkspacePlan plan = backend.workspace(scene.group(), scene.spec(), limits);
    MemorySegment memory =
        HugePages.allocate(scene.arena(), plan.totalBytes(1), WorkspacePlan.ALIGNMENT);
    this.workspace = Workspace.wrap(memory, plan, 1);
    this.step = workspace.openStep();
    this.runtime = GroupRuntime.open(backend, scene.group(), scene.spec());
    this.metadata = runtime.build(new StepContext(scene.launch(), step, 0), scene.batch());
    this.out =
        TensorView.ofHost(
            scene.arena().allocate(scene.q().data().byteSize(), 64),
            work.dtype(),
            work.queryTokens(),
            Work.HEADS,
            work.headSize());
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
    step.close();
    workspace.close();
  }
}

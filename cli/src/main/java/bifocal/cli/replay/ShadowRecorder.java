package bifocal.cli.replay;

import bifocal.cli.replay.Summary.ShadowFacts;
import bifocal.cli.replay.Summary.ShadowPlace;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.capsule.StepCapsule;
import bifocal.core.layer.LayerGroup;
import bifocal.reference.Agreement;
import bifocal.reference.shadow.ShadowComparison;
import bifocal.reference.shadow.ShadowListener;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.nio.file.Path;

/**
 * Keeps how a shadow agrees, and writes the request in which it agrees least, as a case for {@code
 * bifocal attend}.
 */
final class ShadowRecorder implements ShadowListener {
  static final String FILE = "shadow-worst.safetensors";

  private final AttentionBackend<?> primary;
  private final BackendName shadow;
  private final Option<Path> folder;
  private Agreement all = new Agreement(0, 0, Option.none(), 0, Option.none());
  private Option<ShadowPlace> place = Option.none();
  private Seq<String> failures = Vector.empty();
  private Option<Path> recorded = Option.none();
  private int batches;
  private int layer;
  private Seq<Integer> requests = Vector.empty();
  private long nanos;

  /**
   * @param folder where the worst case goes, absent when it is not wanted
   */
  ShadowRecorder(AttentionBackend<?> primary, BackendName shadow, Option<Path> folder) {
    this.primary = primary;
    this.shadow = shadow;
    this.folder = folder;
  }

  /**
   * Says which layer of its group runs next, and which requests of the workload the batch holds.
   */
  void enter(int nextLayer, Seq<Integer> workloadRequests) {
    layer = nextLayer;
    requests = workloadRequests;
  }

  /** Nanoseconds that shadow and comparison took since the last call. */
  long takeNanos() {
    long taken = nanos;
    nanos = 0;
    return taken;
  }

  @Override
  public void compared(ShadowComparison comparison) {
    long start = System.nanoTime();
    batches++;
    boolean worse = comparison.agreement().error() > all.error();
    all = all.worse(comparison.agreement());
    if (worse) {
      ShadowComparison.Place at = comparison.worst().get();
      place =
          Option.some(
              new ShadowPlace(
                  (int) comparison.step(),
                  comparison.group().name(),
                  layer,
                  requests.get(at.request()),
                  at.position(),
                  at.head()));
      folder.forEach(to -> write(to.resolve(FILE), comparison, at.request()));
    }
    nanos += comparison.shadowNanos() + System.nanoTime() - start;
  }

  private void write(Path file, ShadowComparison comparison, int request) {
    StepCapsule.of(
            comparison.group(),
            comparison.batch(),
            StepCapture.origin(
                primary, comparison.step(), comparison.group().layers().get(layer), Option.none()))
        .only(request)
        .write(file, comparison.q(), comparison.cache(), comparison.parameters());
    recorded = Option.some(file);
  }

  @Override
  public void failed(long step, LayerGroup group, RuntimeException failure) {
    failures =
        failures.append("step " + step + ", group " + group.name() + ": " + failure.getMessage());
  }

  /** How the shadow agreed, in all. */
  ShadowFacts facts(double bound) {
    return new ShadowFacts(
        shadow.value(),
        batches,
        all.compared(),
        all.error(),
        bound,
        batches > 0 && failures.isEmpty() && all.error() <= bound,
        place,
        failures,
        recorded.map(Path::toString));
  }
}

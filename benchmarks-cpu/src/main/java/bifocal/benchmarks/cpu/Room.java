package bifocal.benchmarks.cpu;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BatchLimits;
import bifocal.core.backend.StepContext;
import bifocal.core.ffi.HugePages;
import bifocal.core.tensor.TensorView;
import bifocal.core.workspace.Workspace;
import bifocal.core.workspace.WorkspacePlan;
import io.vavr.collection.Seq;

/**
 * The workspace and the output of backends that take turns. Where memory lies decides some percent
 * of a time, so backends that are compared with each other have the same.
 */
final class Room {
  private final Workspace workspace;
  private final Workspace.Step step;
  private final TensorView out;
  private int guests;

  /**
   * Someone's backend over a scene.
   *
   * @param name what results call it
   */
  record Guest(String name, Scene scene, AttentionBackend<?> backend) {
    private WorkspacePlan plan() {
      Work work = scene.work();
      return backend.workspace(
          scene.group(),
          scene.spec(),
          new BatchLimits(work.requests().size(), work.queryTokens(), work.longest()));
    }
  }

  private Room(Seq<Guest> guests) {
    Scene scene = guests.head().scene();
    WorkspacePlan plan = WorkspacePlan.NONE;
    for (int i = 0; i < guests.size(); i++) {
      plan = WorkspacePlan.overlay("", plan, prefix(i), guests.get(i).plan());
    }
    this.workspace =
        Workspace.wrap(
            HugePages.allocate(scene.arena(), plan.totalBytes(1), WorkspacePlan.ALIGNMENT),
            plan,
            1);
    this.step = workspace.openStep();
    this.out = scene.newOutput();
    this.guests = guests.size();
  }

  /** Contenders in one room, in the order of the guests; each has to leave it. */
  static Seq<Contender> of(Seq<Guest> guests) {
    Room room = new Room(guests);
    return guests.zipWithIndex().map(guest -> room.enter(guest._1, guest._2));
  }

  private Contender enter(Guest guest, int place) {
    StepContext context = new StepContext(guest.scene().launch(), step, 0).child(prefix(place));
    return new BackendContender<>(guest.name(), guest.scene(), guest.backend(), this, context);
  }

  private static String prefix(int place) {
    return place + ".";
  }

  TensorView out() {
    return out;
  }

  /** The last one closes it. */
  void leave() {
    guests--;
    if (guests == 0) {
      step.close();
      workspace.close();
    }
  }
}

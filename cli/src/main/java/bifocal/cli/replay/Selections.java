package bifocal.cli.replay;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.InvalidReason;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.LayerGroup;
import bifocal.core.select.Candidate;
import bifocal.core.select.ModelTraits;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import bifocal.core.select.Selector;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import io.vavr.control.Validation;

/** What selection says of a model's layer groups when nobody names a backend. */
record Selections(
    Selector selector, DeviceProfile device, ModelTraits model, Seq<LayerGroup> groups) {

  /**
   * One group's selection.
   *
   * @param chosen what selection would take, absent when nothing is valid
   */
  record GroupSelection(String group, Option<String> chosen, Seq<Considered> candidates) {}

  /**
   * One backend that was considered.
   *
   * @param priority place in the platform's list, from 1
   * @param reasons everything against it
   */
  record Considered(
      String backend,
      Option<Integer> priority,
      boolean valid,
      Seq<String> reasons,
      Option<String> hint) {
    static Considered of(Candidate candidate) {
      return new Considered(
          candidate.backend().value(),
          candidate.priority(),
          candidate.valid(),
          candidate.reasons().map(InvalidReason::text),
          candidate.hint());
    }
  }

  /** Every group's selection. */
  Seq<GroupSelection> all() {
    return groups.map(
        group ->
            select(group)
                .fold(
                    refusal ->
                        new GroupSelection(
                            group.name(), Option.none(), refusal.candidates().map(Considered::of)),
                    report ->
                        new GroupSelection(
                            group.name(),
                            Option.some(report.backend().value()),
                            report.candidates().map(Considered::of))));
  }

  /**
   * The backend that selection takes for every group.
   *
   * @throws BifocalException {@code NO_VALID_BACKEND} with every reason, or {@code
   *     INVALID_SELECTION} when the groups want different ones
   */
  String automatic() {
    Seq<BackendName> chosen =
        groups.map(
            group -> {
              Validation<SelectionRefusal, SelectionReport> selected = select(group);
              if (selected.isInvalid()) {
                throw selected.getError().exception();
              }
              return selected.get().backend();
            });
    if (chosen.distinct().size() > 1) {
      throw BifocalException.of(
              ErrorCode.INVALID_SELECTION,
              "backend of layer groups " + groups.map(LayerGroup::name).mkString(", "),
              chosen.mkString(", "),
              "one for all, since a replay runs one")
          .withRemedy("name one with --backend");
    }
    return chosen.head().value();
  }

  private Validation<SelectionRefusal, SelectionReport> select(LayerGroup group) {
    boolean images = groups.exists(any -> any.mask().seesImages());
    AttentionRequest asked =
        new AttentionRequest(
            group.spec(), device, Option.none(), Deployment.PLAIN.withModelSeesImages(images));
    return selector.select(SelectionRequest.of(group.spec(), device).with(asked).with(model));
  }
}

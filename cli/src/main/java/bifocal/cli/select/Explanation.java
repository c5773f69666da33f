package bifocal.cli.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.Deployment;
import bifocal.core.backend.InvalidReason;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.select.Candidate;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.SelectionRequest;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/** A selection, explained to a person: what was asked, who was considered, what decided. */
final class Explanation {
  private static final int WIDTH = 100;
  private static final int INDENT = 6;

  private Explanation() {}

  /**
   * The explanation of a choice.
   *
   * @param objections why ranks cannot share a sequence there, which leaves nothing chosen
   */
  static String of(SelectionRequest request, SelectionReport report, Seq<String> objections) {
    return lines(
        asked(request)
            .appendAll(candidates(report.candidates()))
            .append("")
            .appendAll(chosen(report, objections))
            .append("")
            .appendAll(whatToChange(report.candidates())));
  }

  private static Seq<String> chosen(SelectionReport report, Seq<String> objections) {
    return objections.isEmpty()
        ? Vector.of("Chosen: " + SelectionText.brief(report).stripTrailing())
        : objections
            .flatMap(text -> wrapped("  " + report.backend() + ": " + text, INDENT))
            .prepend("Chosen: none; ranks cannot share a sequence so:");
  }

  /** The explanation of a refusal. */
  static String of(SelectionRequest request, SelectionRefusal refusal) {
    return lines(
        asked(request)
            .appendAll(candidates(refusal.candidates()))
            .append("")
            .append("Chosen: none")
            .append("")
            .appendAll(whatToChange(refusal.candidates())));
  }

  private static Seq<String> asked(SelectionRequest request) {
    AttentionRequest asked = request.asked();
    AttentionLayerSpec layer = asked.layer();
    return Vector.of(
        "Asked:  "
            + (request.model().id().isEmpty() ? "" : request.model().id() + ", ")
            + layer.type().label()
            + " layer, "
            + layer.numHeads()
            + " query heads over "
            + layer.numKvHeads()
            + " of "
            + layer.headSize()
            + (layer.headSizeV() == layer.headSize() ? "" : "/" + layer.headSizeV())
            + ", "
            + layer.dtype()
            + ", cache "
            + layer.kvCacheDtype()
            + asked.blockSize().map(size -> " in blocks of " + size).getOrElse(""),
        "        " + wishes(asked),
        "On:     "
            + asked.device().label()
            + (asked.device().simulated() ? " (simulated: nothing was probed)" : " (this host)")
            + (request.strictReference() ? ", by the reference alone" : ""),
        "");
  }

  private static String wishes(AttentionRequest asked) {
    AttentionMask mask = asked.layer().mask();
    Deployment deployment = asked.deployment();
    Seq<String> wishes =
        Vector.of(
                mask.causal() ? "causal" : "both ways",
                mask.window().map(w -> "window " + w).getOrElse(""),
                mask.chunk().map(c -> "chunks of " + c).getOrElse(""),
                mask.seesImages()
                    ? "images " + mask.images().label()
                    : asked.mmPrefix() ? "images in other layers of the model" : "",
                asked.layer().sinks() ? "sinks" : "",
                asked.layer().softcap().map(c -> "softcap " + c).getOrElse(""),
                deployment.decodeContextParallel() > 1
                    ? "DCP " + deployment.decodeContextParallel()
                    : "",
                deployment.prefillContextParallel() > 1
                    ? "PCP " + deployment.prefillContextParallel()
                    : "",
                deployment.batchInvariant() ? "batch invariance" : "",
                deployment.kvConnector() ? "KV connector" : "",
                deployment.rswa() ? "R-SWA" : "",
                deployment.adaptiveVerification() ? "adaptive verification" : "",
                deployment.perHeadQuantScales() ? "cache scales per head" : "")
            .filter(wish -> !wish.isEmpty());
    return wishes.mkString(", ");
  }

  private static Seq<String> candidates(Seq<Candidate> candidates) {
    int widest = candidates.map(c -> c.backend().value().length()).max().getOrElse(0);
    return candidates.flatMap(candidate -> candidate(candidate, widest));
  }

  private static Seq<String> candidate(Candidate candidate, int widest) {
    String rank = candidate.priority().map(p -> p + ".").getOrElse("-");
    String name = String.format("  %2s  %-" + widest + "s  ", rank, candidate.backend().value());
    String verdict =
        candidate.valid()
            ? "valid"
            : "no: " + candidate.reasons().map(InvalidReason::text).mkString("; ");
    return wrapped(name + verdict, name.length());
  }

  private static Seq<String> whatToChange(Seq<Candidate> candidates) {
    Seq<String> changes =
        candidates
            .filter(candidate -> candidate.hint().isDefined())
            .flatMap(
                candidate ->
                    wrapped("  " + candidate.backend() + ": " + candidate.hint().get(), INDENT));
    return changes.isEmpty()
        ? changes
        : changes.prepend("What would have to change, and what is worth knowing:");
  }

  private static Seq<String> wrapped(String text, int indent) {
    Seq<String> lines = Vector.empty();
    String rest = text;
    while (rest.length() > WIDTH) {
      int cut = rest.lastIndexOf(' ', WIDTH);
      if (cut <= indent) {
        break;
      }
      lines = lines.append(rest.substring(0, cut));
      rest = " ".repeat(indent) + rest.substring(cut + 1);
    }
    return lines.append(rest);
  }

  private static String lines(Seq<String> lines) {
    return lines.map(line -> line.isBlank() ? "" : line).mkString("", "\n", "\n");
  }
}

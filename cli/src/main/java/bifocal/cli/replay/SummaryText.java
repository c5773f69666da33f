package bifocal.cli.replay;

import bifocal.cli.replay.Summary.Agreed;
import bifocal.cli.replay.Summary.BackendChecks;
import bifocal.cli.replay.Summary.BackendTimes;
import bifocal.cli.replay.Summary.Condition;
import bifocal.cli.replay.Summary.KernelTime;
import bifocal.cli.replay.Summary.PhaseTime;
import bifocal.cli.replay.Summary.Ratio;
import bifocal.cli.replay.Summary.ReasonCount;
import bifocal.cli.replay.Summary.Refused;
import bifocal.cli.replay.Summary.RouteCount;
import bifocal.cli.replay.Summary.ShadowFacts;
import bifocal.cli.replay.Summary.ShadowPlace;
import bifocal.cli.replay.Summary.TraceFacts;
import java.util.Locale;

/** A replay's summary for a person. */
final class SummaryText {
  private final StringBuilder text = new StringBuilder();

  private SummaryText() {}

  static String of(Summary summary) {
    SummaryText writer = new SummaryText();
    writer.served(summary);
    writer.routed(summary);
    writer.timed(summary);
    writer.checked(summary);
    writer.cautioned(summary);
    return writer.text.toString();
  }

  private void served(Summary summary) {
    TraceFacts trace = summary.trace();
    line(
        "trace    %s, %d requests from row %d: %,d prompt and %,d output tokens",
        trace.name(),
        trace.requests(),
        trace.firstRow(),
        trace.promptTokens(),
        trace.outputTokens());
    line(
        "images   %d of %d tokens in %d requests, seeded places (seed %d); count read as %s; %d"
            + " left out for want of room",
        trace.images(),
        trace.imageTokens(),
        trace.imageRequests(),
        trace.seed(),
        trace.imageCount(),
        trace.imagesLeftOut());
    line(
        "model    %s, %s, %s per group: %s",
        summary.model().id(),
        summary.model().dtype(),
        plural(summary.model().layersPerGroup(), "layer"),
        summary.model().groups().mkString("; "));
    for (Condition condition : summary.conditions()) {
      line("%-8s %s", condition.topic(), condition.seen());
    }
    line(
        "steps    %,d with %,d query tokens; %d hold an image query; %d waits for an image's room",
        summary.steps(), summary.queryTokens(), summary.imageSteps(), summary.deferrals());
  }

  private void routed(Summary summary) {
    for (RouteCount count : summary.routes()) {
      line("route    %-8s %-8s %,7d batches", count.group(), count.route(), count.batches());
    }
    for (ReasonCount count : summary.reasons()) {
      line(
          "reason   %-8s to %s     %,7d requests  %s",
          count.group(), count.child(), count.requests(), count.reason());
    }
  }

  private void timed(Summary summary) {
    for (BackendTimes times : summary.backends()) {
      line(
          "time     %-16s %8.2f s: attention %.2f s, cache writes %.2f s, metadata %.3f s; %,.0f"
              + " tokens/s",
          times.backend(),
          times.seconds(),
          times.forwardSeconds(),
          times.writeSeconds(),
          times.buildSeconds(),
          times.tokensPerSecond());
      for (KernelTime child : times.byChild()) {
        line("         %-16s %8.2f s in %s", "", child.milliseconds() / 1e3, child.backend());
      }
      for (PhaseTime phase : times.byPhase()) {
        line(
            "         %-16s %8.2f s in %,d %s steps",
            "", phase.milliseconds() / 1e3, phase.steps(), phase.phase().toLowerCase(Locale.ROOT));
      }
    }
    if (!summary.comparable() && !summary.ratios().isEmpty()) {
      line(
          "ratio    none: only %d steps hold an image query, %d are needed",
          summary.imageSteps(), Summary.STEPS_FOR_RATIOS);
    } else {
      for (Ratio ratio : summary.ratios()) {
        line("ratio    %.2f times as fast as %s on the same steps", ratio.ratio(), ratio.than());
      }
    }
    for (Refused refused : summary.refused()) {
      line("refused  %s: %s", refused.backend(), refused.reasons().mkString("; "));
    }
  }

  private void checked(Summary summary) {
    for (BackendChecks check : summary.checks()) {
      line(
          "check    %-16s %s: worst error %.2e (bound %.1e) over %,d outputs of %,d query tokens in"
              + " %,d batches",
          check.backend(),
          check.passed() ? "passed" : "FAILED",
          check.worstError(),
          check.bound(),
          check.compared(),
          check.queryTokens(),
          check.batches());
    }
    for (Agreed agreed : summary.agreements()) {
      line(
          "check    %-16s %s: checksum of %s differs by %.2e (bound %.1e)",
          agreed.backend(),
          agreed.within() ? "agrees" : "FAILED",
          agreed.group(),
          agreed.distance(),
          agreed.bound());
    }
    summary.shadow().forEach(this::shadowed);
    summary
        .checksums()
        .forEach(
            sum ->
                line(
                    "checksum %-16s %-8s norm %.6e, first projections %s",
                    sum.backend(),
                    sum.group(),
                    sum.norm(),
                    sum.projections().take(3).map(p -> format("%.4e", p)).mkString(" ")));
  }

  private void shadowed(ShadowFacts shadow) {
    line(
        "shadow   %-16s %s: worst error %.2e (bound %.1e)%s over %,d outputs of %,d batches",
        shadow.backend(),
        shadow.within() ? "agrees" : "FAILED",
        shadow.worstError(),
        shadow.bound(),
        shadow.at().map(SummaryText::place).getOrElse(""),
        shadow.compared(),
        shadow.batches());
    shadow.failures().take(3).forEach(failure -> line("shadow   did not run: %s", failure));
    shadow.recorded().forEach(file -> line("shadow   worst request in %s", file));
  }

  private static String place(ShadowPlace at) {
    return format(
        " at step %d, %s layer %d, request %d, position %d, head %d",
        at.step(), at.group(), at.layer(), at.request(), at.position(), at.head());
  }

  private void cautioned(Summary summary) {
    summary.cautions().forEach(caution -> line("caution  %s", caution));
    if (!summary.trace().attribution().isEmpty()) {
      line("source   %s", summary.trace().attribution());
    }
    line("total    %.1f s, making of tensors and checks included", summary.seconds());
  }

  private static String plural(int count, String noun) {
    return count + " " + noun + (count == 1 ? "" : "s");
  }

  private void line(String format, Object... values) {
    text.append(format(format, values)).append('\n');
  }

  private static String format(String format, Object... values) {
    return String.format(Locale.ROOT, format, values);
  }
}

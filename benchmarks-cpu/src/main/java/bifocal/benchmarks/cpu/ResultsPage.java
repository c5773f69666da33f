package bifocal.benchmarks.cpu;

import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.FlexAttentionBackend;
import io.vavr.collection.Seq;
import io.vavr.control.Option;
import java.util.Locale;

/** Results as a section of a document. */
final class ResultsPage {
  private ResultsPage() {}

  static String of(CpuResults results) {
    StringBuilder page = new StringBuilder();
    Host host = results.before();
    page.append(
        """
        %s, %d processors; %s; %s; %s. Load average %.1f before and %.1f after the run, in which our
        own threads count. Kernels: `%s`. Peers: %s.

        ![Rates beside the peers and the machine's peaks](results/cpu.svg)

        | work | type | threads | ours | Vector API | libtorch | ONNX Runtime | over libtorch | of the peak | unit | peaks |
        | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
        """
            .formatted(
                host.processor().getOrElse("Unknown processor"),
                host.processors(),
                host.system(),
                host.java(),
                host.time(),
                host.load(),
                results.after().load(),
                results.rows().headOption().map(Row::kernels).getOrElse("none"),
                results.versions().isEmpty()
                    ? "none"
                    : results.versions().map(v -> v._1 + " " + v._2).mkString(", ")));
    results.rows().forEach(row -> page.append(line(row)));
    page.append(
        """

        | stored keys and values | type | µs | a copy of the bytes, µs | ratio |
        | --- | --- | --- | --- | --- |
        """);
    results
        .writes()
        .forEach(
            write ->
                page.append(
                    String.format(
                        Locale.ROOT,
                        "| %s | %s | %.0f | %.0f | %.2f |%n",
                        write.work(),
                        write.dtype(),
                        write.microseconds(),
                        write.copyMicroseconds(),
                        write.ratio())));
    if (results.composite().nonEmpty()) {
      page.append(steps(results.composite()));
    }
    page.append(
        """

        | goal | wanted | reached | |
        | --- | --- | --- | --- |
        """);
    results
        .goals()
        .forEach(
            goal ->
                page.append(
                    String.format(
                        Locale.ROOT,
                        "| %s | %s %.2f | %.2f | %s |%n",
                        goal.what(),
                        goal.bound().equals(">=") ? "≥" : "≤",
                        goal.wanted(),
                        goal.reached(),
                        goal.met() ? "met" : "missed")));
    return page.toString();
  }

  private static String steps(Seq<CompositeRow> rows) {
    Seq<String> contenders =
        CompositeRow.ROUTES
            .append(FlexAttentionBackend.NAME.value())
            .append(CpuAttnBackend.NAME.value());
    StringBuilder table = new StringBuilder();
    table.append(
        """

        Steps of the default `bifocal replay`, all that hold an image query (\\*) and as many of the others, in bf16, head size 128:
        milliseconds of one layer through the composite on each of its routes and through its children alone, into one output.
        What the goals say of them are medians over the rounds of the ratios of two times of one round.

        | step | requests | query tokens | threads | %s |
        | --- | --- | --- | --- |%s
        """
            .formatted(contenders.mkString(" | "), " --- |".repeat(contenders.size())));
    rows.forEach(
        row ->
            table.append(
                String.format(
                    Locale.ROOT,
                    "| %d%s | %d | %d | %d | %s |%n",
                    row.step(),
                    row.imageQuery() ? " \\*" : "",
                    row.requests(),
                    row.queryTokens(),
                    row.threads(),
                    contenders
                        .map(name -> row.time(name).map(ResultsPage::millis).getOrElse(""))
                        .mkString(" | "))));
    CompositeRow.overLowered(rows, FlexAttentionBackend.NAME.value())
        .forEach(
            ratio ->
                table.append(
                    String.format(
                        Locale.ROOT,
                        "%nOver all of them %s takes %.2f times the time of the composite.%n",
                        FlexAttentionBackend.NAME,
                        ratio)));
    return table.toString();
  }

  private static String millis(double microseconds) {
    return String.format(Locale.ROOT, "%.2f", microseconds / 1e3);
  }

  private static String line(Row row) {
    return "| %s | %s | %d | %s | %s | %s | %s | %s | %s | %s | %s |%n"
        .formatted(
            row.work(),
            row.dtype(),
            row.threads(),
            rate(Option.some(row.ours())),
            rate(row.vectorApi()),
            rate(row.peers().get("libtorch")),
            rate(row.peers().get("onnxruntime")),
            row.ratioLibtorch().map(x -> String.format(Locale.ROOT, "%.2f", x)).getOrElse(""),
            row.percentPeak().map(x -> String.format(Locale.ROOT, "%.0f %%", x)).getOrElse(""),
            row.unit(),
            row.peaks().map(p -> p._1 + " " + rate(Option.some(p._2))).mkString(", "));
  }

  private static String rate(Option<Double> rate) {
    return rate.map(r -> String.format(Locale.ROOT, r < 100 ? "%.1f" : "%,.0f", r)).getOrElse("");
  }
}

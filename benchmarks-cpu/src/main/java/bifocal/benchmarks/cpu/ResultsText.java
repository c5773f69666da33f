package bifocal.benchmarks.cpu;

import io.vavr.control.Option;
import java.util.Locale;

/** Results for people. */
final class ResultsText {
  private static final String ROW = "%-36s %-14s %2dT %9s %9s %9s %9s %7s %6s  %s%n";

  private ResultsText() {}

  static String of(CpuResults results) {
    StringBuilder text = new StringBuilder();
    Host host = results.before();
    text.append(
        "machine  %s, %d processors, %s, %s%n"
            .formatted(
                host.processor().getOrElse("unknown processor"),
                host.processors(),
                host.system(),
                host.java()));
    text.append(
        "load     %.1f before, %.1f after%n".formatted(host.load(), results.after().load()));
    text.append(
        "peers    %s%n%n"
            .formatted(
                results.versions().isEmpty()
                    ? "none"
                    : results.versions().map(v -> v._1 + " " + v._2).mkString(", ")));
    text.append(
        ROW.replace("%2dT", "%3s")
            .formatted(
                "work", "type", "", "ours", "Java", "libtorch", "onnxrt", "ratio", "%peak", ""));
    results.rows().forEach(row -> text.append(line(row)));
    results
        .writes()
        .forEach(
            write ->
                text.append(
                    "%-36s %-14s  1T %7.0f us, copying the bytes %.0f us: %.2f times%n"
                        .formatted(
                            write.work(),
                            write.dtype(),
                            write.microseconds(),
                            write.copyMicroseconds(),
                            write.ratio())));
    results
        .composite()
        .forEach(
            row ->
                text.append(
                    "%-36s %-14s %2dT %s us%n"
                        .formatted(
                            CompositeRow.NAME + ", step " + row.step(),
                            row.queryTokens() + (row.imageQuery() ? ", image" : ""),
                            row.threads(),
                            row.microseconds()
                                .map(
                                    time -> String.format(Locale.ROOT, "%s %.0f", time._1, time._2))
                                .mkString(", "))));
    text.append(System.lineSeparator());
    results
        .goals()
        .forEach(
            goal ->
                text.append(
                    "%-7s %-80s wanted %s %.2f, reached %.2f%n"
                        .formatted(
                            goal.met() ? "met" : "missed",
                            goal.what(),
                            goal.bound(),
                            goal.wanted(),
                            goal.reached())));
    return text.toString();
  }

  private static String line(Row row) {
    return ROW.formatted(
        row.work(),
        row.dtype(),
        row.threads(),
        number(Option.some(row.ours())),
        number(row.vectorApi()),
        number(row.peers().get("libtorch")),
        number(row.peers().get("onnxruntime")),
        row.ratioLibtorch().map(r -> String.format(Locale.ROOT, "%.2f", r)).getOrElse("-"),
        row.percentPeak().map(p -> String.format(Locale.ROOT, "%.0f", p)).getOrElse("-"),
        row.unit()
            + row.peaks()
                .map(p -> String.format(Locale.ROOT, ", %s %.4g", p._1, p._2))
                .mkString(""));
  }

  private static String number(Option<Double> rate) {
    return rate.map(r -> String.format(Locale.ROOT, r < 100 ? "%.2f" : "%.1f", r)).getOrElse("-");
  }
}

package bifocal.cli.select;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.select.SelectionReport;
import io.vavr.collection.Seq;

/** A report for a person. */
final class SelectionText {
  private SelectionText() {}

  /** The choice, in a few lines. */
  static String brief(SelectionReport report) {
    StringBuilder text = new StringBuilder();
    line(text, report.backend().value(), decided(report));
    if (!report.children().isEmpty()) {
      line(text, "  children", report.children().mkString(" (general), ") + " (causal)");
    }
    if (!report.versions().isEmpty()) {
      line(text, "  kernels", report.versions().map(v -> v.backend() + " " + v.version()));
    }
    report.latentPrefill().forEach(prefill -> line(text, "  prefill", prefill));
    line(text, "  KV cache", report.contract().map(c -> cache(report, c)).getOrElse("none"));
    line(text, "  graphs", report.graphSupport().name());
    report.notes().forEach(note -> line(text, "  note", note));
    return text.toString();
  }

  private static String decided(SelectionReport report) {
    String by =
        switch (report.source()) {
          case EXPLICIT -> "named by the user";
          case PRIORITY -> "first valid candidate";
          case MODEL -> "named by the model's policy";
        };
    return by
        + ", "
        + report.device().label()
        + (report.device().simulated() ? ", simulated" : "")
        + (report.extension() ? ", beyond the reference" : "");
  }

  private static String cache(SelectionReport report, KvCacheSpec contract) {
    return report.kvCacheDtype()
        + ", layout "
        + contract.layout().name()
        + ", block "
        + report.blockSize().map(String::valueOf).getOrElse("none")
        + " (kernels run "
        + report.kernelBlockSizes()
        + ")";
  }

  private static void line(StringBuilder text, String what, Seq<String> values) {
    line(text, what, values.mkString(", "));
  }

  private static void line(StringBuilder text, String what, String value) {
    text.append(String.format("%-20s %s%n", what, value));
  }
}

package bifocal.cli.bench;

import bifocal.core.bench.Calibration;
import bifocal.core.bench.ChildTime;
import java.util.Locale;

/** A table of measurements for a person. */
final class CalibrationText {
  private CalibrationText() {}

  static String of(Calibration table) {
    StringBuilder text = new StringBuilder();
    text.append(
        String.format(
            "%-16s %-6s %9s %-8s %7s %8s %12s%n",
            "child", "dtype", "head size", "phase", "queries", "keys", "ns per pair"));
    for (ChildTime time : table.times()) {
      text.append(
          String.format(
              Locale.ROOT,
              "%-16s %-6s %9d %-8s %7d %8d %12.5f%n",
              time.child(),
              time.dtype().label(),
              time.headSize(),
              time.phase().name().toLowerCase(Locale.ROOT),
              time.queryLen(),
              time.seqLen(),
              time.nanosPerPair()));
    }
    return text.append(
            String.format(
                "measured %s on %s (%s), %s, commit %s%n",
                table.provenance().time(),
                table.provenance().device(),
                table.provenance().machine(),
                table.provenance().kernels(),
                table.provenance().commit()))
        .toString();
  }
}

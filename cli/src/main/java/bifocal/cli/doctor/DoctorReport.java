package bifocal.cli.doctor;

import bifocal.core.host.Finding;
import bifocal.core.host.Finding.Status;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * What was found, in the order in which it was looked for; its components are the keys of the JSON
 * result.
 *
 * @param healthy whether nothing that was asked for is missing
 */
record DoctorReport(boolean healthy, Seq<Line> findings) {
  /** One finding. */
  record Line(String topic, String status, String seen, Option<String> remedy) {}

  static DoctorReport of(Seq<Finding> findings) {
    return new DoctorReport(
        findings.forAll(finding -> finding.status() != Status.FAILED),
        findings.map(
            finding ->
                new Line(
                    finding.topic(), finding.status().label(), finding.seen(), finding.remedy())));
  }

  String text() {
    StringBuilder text = new StringBuilder();
    for (Line line : findings) {
      text.append(String.format("%-8s %-14s %s%n", line.status(), line.topic(), line.seen()));
      line.remedy()
          .forEach(remedy -> text.append(String.format("%-8s %-14s -> %s%n", "", "", remedy)));
    }
    return text.toString();
  }
}

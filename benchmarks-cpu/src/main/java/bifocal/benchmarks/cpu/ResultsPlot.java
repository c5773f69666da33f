package bifocal.benchmarks.cpu;

import io.vavr.Tuple;
import io.vavr.Tuple2;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.util.Locale;

/** One bar for each contender of each row that has peers, as shares of the machine's peak. */
final class ResultsPlot {
  private static final int LABELS = 330;
  private static final int WIDTH = 420;
  private static final int BAR = 9;
  private static final int GAP = 12;
  private static final int TOP = 46;

  private ResultsPlot() {}

  static String of(Seq<Row> rows) {
    Seq<Row> shown = rows.filter(row -> !row.peers().isEmpty() && !row.peaks().isEmpty());
    StringBuilder bars = new StringBuilder();
    int y = TOP;
    for (Row row : shown) {
      double peak = row.peaks().values().max().get();
      Seq<Tuple2<String, Double>> entries = entries(row);
      bars.append(
          text(
              LABELS - 8,
              y + entries.size() * BAR / 2 + 4,
              "end",
              row.work() + ", " + row.dtype() + ", " + row.threads() + "T"));
      for (Tuple2<String, Double> entry : entries) {
        double length = WIDTH * Math.min(1, entry._2 / peak);
        bars.append(
            String.format(
                Locale.ROOT,
                "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>%n",
                LABELS,
                y,
                length,
                BAR - 1,
                colour(entry._1)));
        bars.append(
            String.format(
                Locale.ROOT,
                "<text x=\"%.1f\" y=\"%d\" font-size=\"8\">%.4g</text>%n",
                LABELS + length + 3,
                y + BAR - 2,
                entry._2));
        y += BAR;
      }
      y += GAP;
    }
    return head(y) + bars + "</svg>\n";
  }

  private static Seq<Tuple2<String, Double>> entries(Row row) {
    return Vector.of(Tuple.of(Contenders.OURS, row.ours()))
        .appendAll(row.vectorApi().map(rate -> Tuple.of(Contenders.VECTOR_API, rate)))
        .appendAll(row.peers());
  }

  private static String colour(String name) {
    return switch (name) {
      case Contenders.OURS -> "#1b6ca8";
      case Contenders.VECTOR_API -> "#7fb2d9";
      case "libtorch" -> "#d9822b";
      default -> "#9a9a9a";
    };
  }

  private static String head(int height) {
    StringBuilder legend = new StringBuilder();
    int x = LABELS;
    for (String name :
        new String[] {Contenders.OURS, Contenders.VECTOR_API, "libtorch", "onnxruntime"}) {
      legend.append(
          String.format(
              Locale.ROOT,
              "<rect x=\"%d\" y=\"24\" width=\"9\" height=\"9\" fill=\"%s\"/>%n",
              x,
              colour(name)));
      legend.append(text(x + 13, 32, "start", name.replace('_', ' ')));
      x += 100;
    }
    return String.format(
            Locale.ROOT,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\""
                + " font-family=\"sans-serif\" font-size=\"11\">%n"
                + "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>%n",
            LABELS + WIDTH + 60,
            height,
            LABELS + WIDTH + 60)
        + text(
            LABELS, 16, "start", "Full width: the highest peak of the machine for the work's type")
        + legend;
  }

  private static String text(int x, int y, String anchor, String content) {
    return "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\">%s</text>%n"
        .formatted(x, y, anchor, content.replace("&", "&amp;").replace("<", "&lt;"));
  }
}

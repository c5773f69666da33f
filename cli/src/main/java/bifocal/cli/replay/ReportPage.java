package bifocal.cli.replay;

import bifocal.cli.command.JsonText;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * {@code report.html}: one page that needs nothing beside it. Style, script and data are put into a
 * template; the page's own policy forbids the browser to fetch anything.
 */
final class ReportPage {
  private static final Pattern PLACE = Pattern.compile("/\\*\\{(\\w+)}\\*/|<!--\\{(\\w+)}-->");

  private ReportPage() {}

  /** Writes the page whole or not at all. */
  static void write(Path file, ReportData data) {
    String page = of(data);
    WholeFile.write(file, out -> out.write(page));
  }

  /** The page. */
  static String of(ReportData data) {
    return PLACE
        .matcher(resource("report.html"))
        .replaceAll(
            place -> {
              String name = place.group(1) == null ? place.group(2) : place.group(1);
              return Matcher.quoteReplacement(content(name, data));
            });
  }

  private static String content(String place, ReportData data) {
    return switch (place) {
      case "style" -> resource("report.css");
      case "script" -> resource("report.js");
      case "data" -> inScript(JsonText.of(data));
      case "title" -> escaped(data.summary().model().id() + ", " + data.backends().head().name());
      case "text" -> escaped(data.text());
      default -> throw BifocalException.of(ErrorCode.INTERNAL, "place in the report", place, "");
    };
  }

  /** JSON that no browser takes for the end of its script. */
  static String inScript(String json) {
    return json.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029");
  }

  private static String escaped(String text) {
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;");
  }

  private static String resource(String name) {
    try (InputStream in = ReportPage.class.getResourceAsStream(name)) {
      if (in == null) {
        throw BifocalException.of(ErrorCode.INTERNAL, name + " is not in the jar");
      }
      return new String(in.readAllBytes(), StandardCharsets.UTF_8);
    } catch (IOException e) {
      throw BifocalException.of(ErrorCode.INTERNAL, name + " cannot be read").causedBy(e);
    }
  }
}

package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.cli.command.CommandRun;
import bifocal.core.error.BifocalException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.lang.reflect.RecordComponent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The files that a replay leaves behind. */
class ReportTest {
  private static final JsonMapper JSON = new JsonMapper();
  private static final Pattern DATA =
      Pattern.compile(
          "<script type=\"application/json\" id=\"data\">(.*?)</script>", Pattern.DOTALL);

  /** Whatever makes a browser load something: attributes, style sheets, and calls of scripts. */
  private static final Pattern LOADS =
      Pattern.compile(
          "(?:src|href|action|poster|srcset)\\s*=\\s*[\"']?(?!data:,|#)[^\\s\"'>]"
              + "|url\\((?!#)|@import|\\bfetch\\(|XMLHttpRequest|WebSocket|EventSource"
              + "|sendBeacon|\\bimport\\(|new Image\\b",
          Pattern.CASE_INSENSITIVE);

  @TempDir static Path folder;
  private static CommandRun run;
  private static String page;
  private static List<JsonNode> lines;

  @BeforeAll
  static void replays() throws IOException {
    run =
        SmallReplay.in(
            folder, "--report=" + folder.resolve("out"), "--compare=FLEX_ATTENTION,CPU_ATTN");
    assertThat(run.status()).as(run.err()).isZero();
    page = Files.readString(folder.resolve("out/report.html"));
    lines =
        Files.readAllLines(folder.resolve("out/steps.jsonl")).stream()
            .map(ReportTest::parsed)
            .toList();
  }

  @Test
  void itSaysWhereThePageIs() {
    assertThat(run.err()).endsWith("the report is " + folder.resolve("out/report.html") + "\n");
  }

  private static JsonNode parsed(String json) {
    try {
      return JSON.readTree(json);
    } catch (IOException e) {
      throw new AssertionError("not JSON: " + json, e);
    }
  }

  private static JsonNode data() {
    Matcher found = DATA.matcher(page);
    assertThat(found.find()).isTrue();
    return parsed(found.group(1));
  }

  @Test
  void pageLoadsNothing() {
    Matcher loads = LOADS.matcher(DATA.matcher(page).replaceAll(""));
    assertThat(loads.find() ? loads.group() : "").isEmpty();
    assertThat(page).contains("default-src 'none'");
  }

  @Test
  void searchForLoadsWouldFindThem() {
    assertThat(
            Stream.of(
                "<script src=\"https://host/x.js\">",
                "<link href='style.css'>",
                "url(https://host/font)",
                "@import 'x'",
                "fetch('x')"))
        .allMatch(text -> LOADS.matcher(text).find());
  }

  @Test
  void everyPlaceOfTheTemplateIsFilled() {
    assertThat(page).doesNotContain("/*{").doesNotContain("<!--{");
  }

  @Test
  void pageHoldsTheSummaryThatWasPrinted() {
    JsonNode data = data();
    assertThat(run.out()).isEqualTo(data.get("text").asText());
    assertThat(data.get("passed").asBoolean()).isTrue();
    assertThat(data.at("/summary/trace/requests").asInt()).isEqualTo(3);
    assertThat(data.at("/summary/refused/0/backend").asText()).isEqualTo("CPU_ATTN");
  }

  @Test
  void theHeadSaysOnHowManyThreadsAndWhyAndWhichKernelsRan() {
    assertThat(run.out())
        .containsPattern("threads {2}\\d+ threads?: \\S+")
        .contains("kernels  the CPU backends run on ");
    assertThat(data().at("/summary/conditions")).hasSize(2);
  }

  @Test
  void pageShowsWhatSelectionSaysOfEachGroup() {
    JsonNode sliding = data().at("/selections/0");
    assertThat(sliding.get("group").asText()).isEqualTo("sliding");
    assertThat(sliding.get("chosen").asText()).isEqualTo("FLEX_CPU_ATTN");
    assertThat(sliding.get("candidates"))
        .anySatisfy(
            candidate -> {
              assertThat(candidate.get("backend").asText()).isEqualTo("CPU_ATTN");
              assertThat(candidate.get("valid").asBoolean()).isFalse();
              assertThat(candidate.at("/reasons/0").asText())
                  .isEqualTo("partial multimodal token full attention not supported");
            });
  }

  @Test
  void pageNamesTheExactCommand() {
    assertThat(data().at("/invocation/command").asText())
        .startsWith("bifocal replay --trace=")
        .endsWith("--compare=FLEX_ATTENTION,CPU_ATTN");
  }

  @Test
  void pageHoldsEveryBatchOfTheStepsFile() {
    JsonNode data = data();
    assertThat(data.get("batches")).hasSameSizeAs(lines);
    for (int i = 0; i < lines.size(); i++) {
      JsonNode batch = data.get("batches").get(i);
      JsonNode line = lines.get(i);
      assertThat(batch.get("step")).isEqualTo(line.get("step"));
      assertThat(batch.get("route")).isEqualTo(line.get("route"));
      assertThat(data.get("groups").get(batch.get("group").asInt()).get("name"))
          .isEqualTo(line.get("group"));
      for (int r = 0; r < batch.get("reasons").size(); r++) {
        JsonNode reason = data.get("reasons").get(batch.get("reasons").get(r).asInt());
        assertThat(reason.get("code")).isEqualTo(line.at("/requests/" + r + "/code"));
        assertThat(reason.get("text")).isEqualTo(line.at("/requests/" + r + "/reason"));
        assertThat(batch.get("children").asText().substring(r, r + 1))
            .isEqualTo(line.at("/requests/" + r + "/child").asText());
      }
    }
  }

  @Test
  void imagesRunOnTheFastChildAsRunsWithTheirFirstDifferingQueryAndKey() {
    assertThat(lines)
        .anyMatch(
            line ->
                line.get("route").asText().equals("LOWERED")
                    && line.at("/requests/0/child").asText().equals("B")
                    && line.at("/requests/0/reason")
                        .asText()
                        .matches("query \\d+ needs key \\d+, given by a non-causal run"));
  }

  @Test
  void withoutLoweringImagesGoToTheGeneralChild() throws IOException {
    Path split = folder.resolve("split");
    CommandRun run = SmallReplay.in(folder, "--report=" + split, "--no-lowering");
    assertThat(run.status()).as(run.err()).isZero();
    List<JsonNode> steps = new ArrayList<>();
    for (String line : Files.readAllLines(split.resolve("steps.jsonl"))) {
      steps.add(JSON.readTree(line));
    }
    assertThat(steps)
        .anyMatch(
            line ->
                line.get("route").asText().equals("SPLIT")
                    && line.at("/requests/0/child").asText().equals("A")
                    && line.at("/requests/0/reason").asText().matches("query \\d+ needs key \\d+"));
    assertThat(steps).noneMatch(line -> line.get("route").asText().equals("LOWERED"));
  }

  @Test
  void dataCannotEndItsScript() {
    assertThat(ReportPage.inScript("{\"a\":\"</script><!--\u2028\"}"))
        .isEqualTo("{\"a\":\"\\u003c/script>\\u003c!--\\u2028\"}");
  }

  @Test
  void fileThatCannotBeFinishedLeavesWhatWasThere() throws IOException {
    Path file = folder.resolve("kept.txt");
    Files.writeString(file, "before");
    assertThatThrownBy(
            () ->
                WholeFile.write(
                    file,
                    out -> {
                      out.write("half");
                      throw new IOException("disk full");
                    }))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("disk full");
    assertThat(file).hasContent("before");
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files.map(f -> String.valueOf(f.getFileName())))
          .noneMatch(name -> name.startsWith("kept") && !name.equals("kept.txt"));
    }
  }

  @Test
  void folderThatCannotBeMadeIsRefusedBeforeAnythingRuns() throws IOException {
    Path file = folder.resolve("file");
    Files.writeString(file, "");
    CommandRun refused = SmallReplay.in(folder, "--report=" + file.resolve("below"));
    assertThat(refused.status()).isEqualTo(2);
    assertThat(refused.err()).contains("report folder").doesNotContain("requests, step");
  }

  @Test
  void documentedSchemaOfStepsIsTheOneWritten() throws IOException {
    String document = Files.readString(Path.of("..", "docs", "steps-jsonl.md"));
    assertThat(keys(document, "## A line")).isEqualTo(keys(StepsFile.Line.class));
    assertThat(keys(document, "## An element of `children`"))
        .isEqualTo(keys(StepsFile.ChildTime.class));
    assertThat(keys(document, "## An element of `requests`"))
        .isEqualTo(keys(StepsFile.RequestLine.class));
    assertThat(keys(document, "## An element of `checks`")).isEqualTo(keys(StepRecord.Check.class));
    assertThat(lines)
        .allSatisfy(
            line ->
                assertThat(line.fieldNames()).toIterable().isEqualTo(keys(document, "## A line")));
  }

  private static List<String> keys(String document, String heading) {
    String section = document.substring(document.indexOf(heading) + heading.length());
    int next = section.indexOf("\n## ");
    return Pattern.compile("^\\| `(\\w+)` \\|", Pattern.MULTILINE)
        .matcher(next < 0 ? section : section.substring(0, next))
        .results()
        .map(row -> row.group(1))
        .toList();
  }

  private static List<String> keys(Class<? extends Record> type) {
    return Stream.of(type.getRecordComponents())
        .map(RecordComponent::getName)
        .map(name -> name.replaceAll("([A-Z])", "_$1").toLowerCase(Locale.ROOT))
        .toList();
  }
}

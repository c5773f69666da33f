package bifocal.cli.route;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.Main;
import bifocal.cli.backend.MeasuredTable;
import bifocal.cli.command.CommandRun;
import bifocal.cli.command.Installed;
import bifocal.core.device.Platform;
import bifocal.core.tensor.DType;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The command from its arguments and input to its streams and status. */
class RouteCommandTest {
  private static final JsonMapper MAPPER = new JsonMapper();

  private static CommandRun route(String spec, String... more) {
    String[] arguments = new String[more.length + 3];
    arguments[0] = "route";
    arguments[1] = "--spec";
    arguments[2] = "-";
    System.arraycopy(more, 0, arguments, 3, more.length);
    return CommandRun.of(spec.replace('\'', '"'), console -> Main.run(console, arguments));
  }

  private static JsonNode json(String spec) {
    CommandRun run = route(spec, "--format", "json");
    assertThat(run.err()).isEmpty();
    return parsed(run);
  }

  private static JsonNode parsed(CommandRun run) {
    try {
      return MAPPER.readTree(run.out());
    } catch (IOException e) {
      throw new AssertionError(run.out(), e);
    }
  }

  private static JsonNode refused(String spec) {
    CommandRun run = route(spec, "--format=json");
    assertThat(run.status()).isEqualTo(2);
    assertThat(run.out()).hasLineCount(1);
    assertThat(run.err()).isEmpty();
    assertThat(parsed(run).fieldNames()).toIterable().containsExactly("error");
    JsonNode error = parsed(run).get("error");
    assertThat(error.fieldNames()).toIterable().containsExactly("code", "message", "request");
    return error;
  }

  private static String line(String text) {
    return text.replace('\'', '"') + System.lineSeparator();
  }

  @Nested
  class Output {
    private static final String SPEC =
        "{'layers':{'sliding_window':4,'mask':'clamp_past'},'requests':["
            + "{'query_len':5,'seq_len':12,'images':[[0,8]]},"
            + "{'query_len':2,'seq_len':30}]}";

    @Test
    void isOneObjectWithItsKeysInOrder() {
      assertThat(route(SPEC, "--format", "json"))
          .isEqualTo(
              new CommandRun(
                  0,
                  line(
                      "{'route':'SPLIT','requests':["
                          + "{'index':0,'child':'A','code':'NEEDS_FUTURE_KEY',"
                          + "'reason':'query 7 needs key 8','runs':null},"
                          + "{'index':1,'child':'B','code':'NO_IMAGE_QUERY',"
                          + "'reason':'no query lies in an image','runs':null}],"
                          + "'graph':'eager'}"),
                  ""));
    }

    @Test
    void listsRuns() {
      assertThat(json(SPEC.replace("'requests'", "'lowering':true,'requests'")))
          .hasToString(
              line("{'route':'LOWERED','requests':["
                      + "{'index':0,'child':'B','code':'LOWERED',"
                      + "'reason':'query 7 needs key 8, given by a non-causal run','runs':["
                      + "{'first':7,'last':8,'causal':false,'seq_len':9},"
                      + "{'first':9,'last':11,'causal':true,'seq_len':12}]},"
                      + "{'index':1,'child':'B','code':'NO_IMAGE_QUERY',"
                      + "'reason':'no query lies in an image','runs':null}],"
                      + "'graph':'eager'}")
                  .strip());
    }

    @Test
    void isATableForAPerson() {
      CommandRun run = route(SPEC);

      assertThat(run.status()).isZero();
      assertThat(run.out())
          .startsWith("route SPLIT, graph eager")
          .containsPattern("0 +A +NEEDS_FUTURE_KEY +query 7 needs key 8")
          .containsPattern("1 +B +NO_IMAGE_QUERY +no query lies in an image");
      assertThat(run.err()).isEmpty();
    }

    @Test
    void comesFromAFileToo(@TempDir Path folder) throws IOException {
      Path file = folder.resolve("spec.json");
      Files.writeString(file, SPEC.replace('\'', '"'));

      assertThat(
              CommandRun.of(
                  "", console -> Main.run(console, "route", "--spec=" + file, "--format=json")))
          .isEqualTo(route(SPEC, "--format", "json"));
    }
  }

  @Nested
  class Measured {
    private static final String SPEC =
        "{'layers':{'mask':'clamp_past','head_size':128},'requests':["
            + "{'query_len':64,'seq_len':64,'images':[]},{'query_len':1,'seq_len':30}]}";

    @TempDir private Path folder;

    @BeforeEach
    void needsTheCpu() {
      Installed.require(Platform.CPU);
    }

    private String table(double general, double fast) {
      return "--calibration=" + MeasuredTable.write(folder, general, fast, DType.BF16, 128);
    }

    @Test
    void aFasterGeneralChildGetsWhatBothMayRun() {
      CommandRun run = route(SPEC, table(1, 9), "--format=json");

      assertThat(run.status()).as(run.err()).isZero();
      assertThat(parsed(run).at("/requests/0/child").asText()).isEqualTo("A");
      assertThat(parsed(run).at("/requests/0/code").asText()).isEqualTo("MEASURED");
      assertThat(parsed(run).at("/requests/0/reason").asText()).contains("measured: ");
    }

    @Test
    void aFasterFastChildKeepsWhatItHas() {
      JsonNode answer = parsed(route(SPEC, table(9, 1), "--format=json"));

      assertThat(answer.get("route").asText()).isEqualTo("B");
      assertThat(answer.at("/requests/0/code").asText()).isEqualTo("NO_IMAGE_QUERY");
      assertThat(answer.at("/requests/0/reason").asText()).contains("measured: ");
    }

    @Test
    void layersThatWereNotMeasuredAreNamed() {
      CommandRun run = route(SPEC.replace("128", "256"), table(1, 9));

      assertThat(run.status()).isEqualTo(2);
      assertThat(run.err())
          .contains("nothing on FLEX_ATTENTION and CPU_ATTN in layers given (bf16, head size 256)");
    }

    @Test
    void anotherPolicyIsNotOverruled() {
      CommandRun run =
          route(SPEC.replace("{'layers'", "{'policy':'child-b','layers'"), table(1, 9));

      assertThat(run.status()).isEqualTo(2);
      assertThat(run.err()).contains("--calibration beside another policy");
    }

    @Test
    void aBackendThatIsNoPairIsRefused() {
      CommandRun run = route(SPEC, table(1, 9), "--backend=CPU_ATTN");

      assertThat(run.status()).isEqualTo(2);
      assertThat(run.err()).contains("--calibration of CPU_ATTN").contains("a pair");
    }

    @Test
    void aBackendWithoutATableIsRefused() {
      CommandRun run = route(SPEC, "--backend=CPU_ATTN");

      assertThat(run.status()).isEqualTo(2);
      assertThat(run.err()).contains("--backend").contains("without --calibration");
    }
  }

  @Nested
  class Defaults {
    @Test
    void areTextLayersWithoutWindow() {
      JsonNode answer = json("{'requests':[{'query_len':5,'seq_len':12,'images':[[0,8]]}]}");

      assertThat(answer.get("route").asText()).isEqualTo("B");
      assertThat(answer.at("/requests/0/code").asText()).isEqualTo("NO_IMAGE_QUERY");
    }

    @Test
    void nullCountsAsLeftOut() {
      assertThat(
              json(
                  "{'policy':null,'layers':{'sliding_window':null,'mask':null},'split':null,"
                      + "'lowering':null,'live':null,"
                      + "'requests':[{'query_len':1,'seq_len':12,'images':null}]}"))
          .isEqualTo(json("{'requests':[{'query_len':1,'seq_len':12}]}"));
    }

    @Test
    void anEmptyBatchIsEager() {
      assertThat(json("{'requests':[]}"))
          .hasToString("{\"route\":\"B\",\"requests\":[],\"graph\":\"eager\"}");
    }
  }

  @Nested
  class Graph {
    @ParameterizedTest
    @CsvSource(
        delimiter = ';',
        value = {
          "{'query_len':1,'seq_len':9}; replayable",
          "{'query_len':1,'seq_len':9},{'query_len':1,'seq_len':1}; replayable",
          "{'query_len':1,'seq_len':9},{'query_len':2,'seq_len':9}; eager",
          "{'query_len':1,'seq_len':9},{'query_len':0,'seq_len':9}; eager",
          "{'query_len':0,'seq_len':9}; eager"
        })
    void isReplayableForSingleQueriesAlone(String requests, String graph) {
      assertThat(json("{'requests':[" + requests + "]}").get("graph").asText()).isEqualTo(graph);
    }

    @Test
    void isEagerWhereASingleQueryNeedsTheGeneralChild() {
      JsonNode answer =
          json(
              "{'layers':{'sliding_window':4,'mask':'override'},"
                  + "'requests':[{'query_len':1,'seq_len':9,'images':[[0,8]]}]}");

      assertThat(answer.get("route").asText()).isEqualTo("A");
      assertThat(answer.get("graph").asText()).isEqualTo("eager");
      assertThat(answer.at("/requests/0/code").asText()).isEqualTo("NEEDS_KEY_BEHIND_WINDOW");
    }
  }

  @Nested
  class Split {
    private static final String REQUESTS =
        "'requests':[{'query_len':9,'seq_len':9,'images':[[1,7]]},{'query_len':3,'seq_len':9},"
            + "{'query_len':9,'seq_len':9,'images':[[2,5]]},{'query_len':0,'seq_len':9}]}";

    @ParameterizedTest
    @CsvSource(
        delimiter = ';',
        value = {
          "'split':true,'lowering':false; SPLIT; A B A B;"
              + " NEEDS_FUTURE_KEY NO_IMAGE_QUERY NEEDS_FUTURE_KEY EMPTY; n n n n",
          "'split':false,'lowering':false; A; A A A A;"
              + " NEEDS_FUTURE_KEY FOLLOWS_BATCH NEEDS_FUTURE_KEY EMPTY; n n n n",
          "'split':true,'lowering':true; SPLIT; A B B B;"
              + " NOT_LOWERABLE NO_IMAGE_QUERY LOWERED EMPTY; n n 3 n",
          "'split':false,'lowering':true; A; A A A A;"
              + " NOT_LOWERABLE FOLLOWS_BATCH FOLLOWS_BATCH EMPTY; n n n n"
        })
    void saysWhoCarriesWhat(
        String options, String route, String children, String codes, String runs) {
      JsonNode answer =
          json("{'layers':{'sliding_window':4,'mask':'override'}," + options + "," + REQUESTS);

      assertThat(answer.get("route").asText()).isEqualTo(route);
      String[] child = children.split(" ");
      String[] code = codes.split(" ");
      String[] run = runs.split(" ");
      for (int r = 0; r < 4; r++) {
        JsonNode request = answer.get("requests").get(r);
        assertThat(request.get("index").asInt()).isEqualTo(r);
        assertThat(request.get("child").asText()).isEqualTo(child[r]);
        assertThat(request.get("code").asText()).isEqualTo(code[r]);
        assertThat(request.get("runs").isNull() ? "n" : "" + request.get("runs").size())
            .isEqualTo(run[r]);
      }
    }

    @Test
    void loweringAnOverridingImageWithinTheWindowSplitsNothing() {
      JsonNode answer =
          json(
              "{'layers':{'sliding_window':4,'mask':'override'},'split':false,'lowering':true,"
                  + "'requests':[{'query_len':9,'seq_len':9,'images':[[2,5]]}]}");

      assertThat(answer.get("route").asText()).isEqualTo("LOWERED");
    }

    @Test
    void loweringWithNothingToLowerIsTheFastChild() {
      JsonNode answer =
          json(
              "{'layers':{'mask':'override'},'lowering':true,"
                  + "'requests':[{'query_len':3,'seq_len':9,'images':[[2,5]]}]}");

      assertThat(answer.get("route").asText()).isEqualTo("B");
      assertThat(answer.at("/requests/0/runs").isNull()).isTrue();
    }
  }

  /** Batches that routers of comparable systems got wrong in the field. */
  @Nested
  class FieldCases {
    private static String label(String mask, int window, int queryLen, int seqLen, String images) {
      return json("{'layers':{'sliding_window':%d,'mask':'%s'},'requests':[%s]}"
              .formatted(window, mask, request(queryLen, seqLen, images)))
          .get("route")
          .asText();
    }

    private static String request(int queryLen, int seqLen, String images) {
      return "{'query_len':%d,'seq_len':%d,'images':[%s]}".formatted(queryLen, seqLen, images);
    }

    /** C03: a past image diverts no later step. */
    @ParameterizedTest
    @CsvSource({
      "override, 1024, 1, B",
      "clamp_past, 1024, 1, B",
      "clamp_both, 1024, 1, B",
      "override, 64, 3, B",
      "override, 1024, 35, B",
      "clamp_past, 1024, 35, B",
      "clamp_both, 1024, 35, B",
      "override, 1024, 40, A",
      "clamp_past, 1024, 40, A",
      "clamp_both, 1024, 40, A"
    })
    void pastImage(String mask, int window, int queryLen, String route) {
      assertThat(label(mask, window, queryLen, 300, "[10,265]")).isEqualTo(route);
    }

    /** C03: neither for one decode nor for many. */
    @Test
    void pastImagesOfManyDecodes() {
      String decodes = (request(1, 300, "[10,265]") + ",").repeat(32);
      JsonNode answer =
          json(
              "{'layers':{'sliding_window':1024,'mask':'override'},'requests':["
                  + decodes.substring(0, decodes.length() - 1)
                  + "]}");

      assertThat(answer.get("route").asText()).isEqualTo("B");
      assertThat(answer.get("graph").asText()).isEqualTo("replayable");
    }

    /** C04: clamped and overriding images differ at the image's last query. */
    @ParameterizedTest
    @CsvSource({
      "5, clamp_past, A", "5, clamp_both, A", "5, override, A",
      "4, clamp_past, B", "4, clamp_both, B", "4, override, A",
      "3, clamp_past, B", "3, clamp_both, B", "3, override, B"
    })
    void imageTail(int queryLen, String mask, String route) {
      assertThat(label(mask, 4, queryLen, 12, "[0,8]")).isEqualTo(route);
    }

    /** C05: a chunk that ends inside an image. */
    @Test
    void cutImage() {
      JsonNode error =
          refused(
              "{'layers':{'sliding_window':1024,'mask':'override'},'requests':["
                  + request(256, 256, "[100,355]")
                  + "]}");

      assertThat(error.get("code").asText()).isEqualTo("IMAGE_CUT");
      assertThat(error.get("request").asInt()).isZero();
      assertThat(label("override", 1024, 100, 100, "[100,355]")).isEqualTo("B");
      assertThat(label("override", 1024, 256, 356, "[100,355]")).isEqualTo("A");
      assertThat(label("none", 1024, 256, 256, "[100,355]")).isEqualTo("B");
    }

    /** C06: an image longer than the window. */
    @ParameterizedTest
    @CsvSource({"clamp_past", "clamp_both", "override"})
    void longImage(String mask) {
      assertThat(label(mask, 4, 6, 6, "[0,5]")).isEqualTo("A");
      assertThat(label(mask, 1024, 1100, 1100, "[0,1099]")).isEqualTo("A");
    }

    /** C07: padded rows hold whatever an earlier step left there. */
    @Test
    void paddedRows() {
      String decodes = (request(1, 300, "[10,265]") + ",").repeat(5);
      String layers = "{'layers':{'sliding_window':64,'mask':'override'},'live':5,'requests':[";
      String zeroed = "{'query_len':0,'seq_len':0},".repeat(2) + "{'query_len':0,'seq_len':0}]}";
      String poisoned =
          request(400, 400, "[0,399]")
              + ",{'query_len':-5,'seq_len':99999999999,'images':[[9,3],'x'],'more':1},null]}";

      JsonNode answer = json(layers + decodes + poisoned);

      assertThat(answer).isEqualTo(json(layers + decodes + zeroed));
      assertThat(answer.get("route").asText()).isEqualTo("B");
      assertThat(answer.get("graph").asText()).isEqualTo("replayable");
      assertThat(answer.get("requests")).hasSize(5);
    }
  }

  @Nested
  class Refusals {
    @ParameterizedTest
    @CsvSource(
        delimiter = ';',
        value = {
          "IMAGE_CUT; {'query_len':9,'seq_len':9,'images':[[5,9]]}",
          "IMAGE_CUT; {'query_len':1,'seq_len':9,'images':[[8,9]]}",
          "IMAGE_REVERSED; {'query_len':9,'seq_len':9,'images':[[5,4]]}",
          "IMAGE_REVERSED; {'query_len':9,'seq_len':9,'images':[[5,12],[40,30]]}",
          "IMAGE_OVERLAP; {'query_len':9,'seq_len':9,'images':[[5,6],[1,5]]}",
          "IMAGE_OVERLAP; {'query_len':9,'seq_len':9,'images':[[20,30],[25,26]]}",
          "IMAGE_OVERLAP; {'query_len':0,'seq_len':9,'images':[[3,3],[3,3]]}",
          "NEGATIVE; {'query_len':9,'seq_len':9,'images':[[-1,4]]}",
          "NEGATIVE; {'query_len':-1,'seq_len':9}",
          "NEGATIVE; {'query_len':1,'seq_len':-9}",
          "NEGATIVE; {'query_len':1,'seq_len':-99999999999999999999}",
          "OVERFLOW; {'query_len':1,'seq_len':2147483648}",
          "OVERFLOW; {'query_len':99999999999999999999,'seq_len':9}",
          "OVERFLOW; {'query_len':9,'seq_len':9,'images':[[20,3000000000]]}",
          "OVERFLOW; {'query_len':2147483647,'seq_len':2147483647}",
          "QUERY_EXCEEDS_SEQ; {'query_len':10,'seq_len':9}",
          "MALFORMED_INPUT; {'query_len':1}",
          "MALFORMED_INPUT; {'seq_len':1}",
          "MALFORMED_INPUT; {'query_len':'1','seq_len':9}",
          "MALFORMED_INPUT; {'query_len':1.0,'seq_len':9}",
          "MALFORMED_INPUT; {'query_len':null,'seq_len':9}",
          "MALFORMED_INPUT; {'query_len':true,'seq_len':9}",
          "MALFORMED_INPUT; {'query_len':1,'seq_len':9,'images':[5,9]}",
          "MALFORMED_INPUT; {'query_len':1,'seq_len':9,'images':[[5]]}",
          "MALFORMED_INPUT; {'query_len':1,'seq_len':9,'images':[[5,6,7]]}",
          "MALFORMED_INPUT; {'query_len':1,'seq_len':9,'images':[[5,'6']]}",
          "MALFORMED_INPUT; {'query_len':1,'seq_len':9,'images':'x'}",
          "MALFORMED_INPUT; 7",
          "MALFORMED_INPUT; null",
          "INVALID_OPTION; {'query_len':1,'seq_len':9,'image':[]}"
        })
    void nameTheRequest(String code, String request) {
      JsonNode error =
          refused(
              "{'layers':{'mask':'override'},'requests':[{'query_len':3,'seq_len':3},"
                  + request
                  + "]}");

      assertThat(error.get("code").asText()).isEqualTo(code);
      assertThat(error.get("request").asInt(-1)).isEqualTo(1);
      assertThat(error.get("message").asText()).isNotBlank();
    }

    @ParameterizedTest
    @CsvSource(
        delimiter = ';',
        value = {
          "MALFORMED_INPUT; {}",
          "MALFORMED_INPUT; []",
          "MALFORMED_INPUT; 7",
          "MALFORMED_INPUT; {'requests':7}",
          "MALFORMED_INPUT; {'requests':[]",
          "MALFORMED_INPUT; {'requests':[]} {}",
          "MALFORMED_INPUT; {'requests':[],'requests':[]}",
          "MALFORMED_INPUT; {'requests':[],'split':1}",
          "MALFORMED_INPUT; {'requests':[],'lowering':'yes'}",
          "MALFORMED_INPUT; {'requests':[],'layers':[]}",
          "MALFORMED_INPUT; {'requests':[],'layers':{'sliding_window':'4'}}",
          "MALFORMED_INPUT; {'requests':[],'layers':{'mask':4}}",
          "MALFORMED_INPUT; {'requests':[],'policy':{}}",
          "MALFORMED_INPUT; {'requests':[],'live':0.5}",
          "INVALID_PARAMETER; {'requests':[],'layers':{'sliding_window':0}}",
          "NEGATIVE; {'requests':[],'layers':{'sliding_window':-4}}",
          "OVERFLOW; {'requests':[],'layers':{'sliding_window':2147483648}}",
          "NEGATIVE; {'requests':[],'live':-1}",
          "LIVE_EXCEEDS_REQUESTS; {'requests':[],'live':1}",
          "INVALID_OPTION; {'requests':[],'lowering':true,'policy':'prefill-decode'}"
        })
    void ofTheWholeNameNoRequest(String code, String spec) {
      JsonNode error = refused(spec);

      assertThat(error.get("code").asText()).isEqualTo(code);
      assertThat(error.get("request").isNull()).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"", " ", "\u0000", "{", "\"", "nul"})
    void ofWhatIsNoJsonSaySo(String spec) {
      assertThat(refused(spec).get("code").asText()).isEqualTo("MALFORMED_INPUT");
    }

    @Test
    void ofBottomlessNestingSaySo() {
      assertThat(refused("[".repeat(100_000)).get("code").asText()).isEqualTo("MALFORMED_INPUT");
    }

    @ParameterizedTest
    @CsvSource(
        delimiter = ';',
        value = {
          "{'requets':[]}; requests",
          "{'requests':[],'layers':{'windw':4}}; sliding_window",
          "{'requests':[],'layers':{'maks':'none'}}; mask",
          "{'requests':[],'layers':{'mask':'overide'}}; override",
          "{'requests':[],'policy':'mm_prefix'}; mm-prefix",
          "{'requests':[{'query_length':1,'seq_len':2}]}; query_len"
        })
    void ofUnknownNamesNameTheNearest(String spec, String nearest) {
      JsonNode error = refused(spec);

      assertThat(error.get("code").asText()).isEqualTo("INVALID_OPTION");
      assertThat(error.get("message").asText()).contains("'" + nearest + "'");
    }

    @Test
    void areOneLineOnTheErrorStreamForAPerson() {
      CommandRun run =
          route("{'layers':{'mask':'override'},'requests':[{'query_len':10,'seq_len':9}]}");

      assertThat(run)
          .isEqualTo(
              new CommandRun(
                  2,
                  "",
                  line(
                      "bifocal: request 0: query_len 10, wanted at most seq_len 9 (QUERY_EXCEEDS_SEQ)")));
    }

    @Test
    void cannotBeMadeToSpanLines() {
      CommandRun run = route("{'\\n\\u001b[31mx':1}");

      assertThat(run.status()).isEqualTo(2);
      assertThat(run.err()).hasLineCount(1).doesNotContain("\u001b");
    }

    @ParameterizedTest
    @ValueSource(strings = {"no-such-file.json", "."})
    void ofFilesNameTheFile(String file) {
      CommandRun run = CommandRun.of("", console -> Main.run(console, "route", "--spec", file));

      assertThat(run.status()).isEqualTo(2);
      assertThat(run.err()).hasLineCount(1);
    }

    @Test
    void ofAMissingSpecSayWhatIsMissing() {
      CommandRun run = CommandRun.of("", console -> Main.run(console, "route"));

      assertThat(run.status()).isEqualTo(2);
      assertThat(run.err()).contains("--spec").hasLineCount(1);
    }
  }

  @Nested
  class OtherPolicies {
    @ParameterizedTest
    @CsvSource({"prefill-decode, SPLIT", "child-a, A", "child-b, B"})
    void canBeAsked(String policy, String route) {
      JsonNode answer =
          json(
              "{'policy':'%s','requests':[{'query_len':9,'seq_len':9},{'query_len':1,'seq_len':9}]}"
                  .formatted(policy));

      assertThat(answer.get("route").asText()).isEqualTo(route);
    }
  }

  @Test
  void imagesOfTextLayersAreParsedButNotLookedAt() {
    assertThat(
            json("{'requests':[{'query_len':9,'seq_len':9,"
                    + "'images':[[5,4],[-3,99999999999],[5,20]]}]}")
                .get("route")
                .asText())
        .isEqualTo("B");
    assertThat(
            refused("{'requests':[{'query_len':9,'seq_len':9,'images':[[5,'4']]}]}")
                .get("code")
                .asText())
        .isEqualTo("MALFORMED_INPUT");
  }

  @Test
  void helpIsShownOnEveryLevel() {
    for (String[] arguments : new String[][] {{}, {"--help"}, {"route", "--help"}}) {
      CommandRun run = CommandRun.of("", console -> Main.run(console, arguments));

      assertThat(run.status()).isZero();
      assertThat(run.out()).startsWith("Usage: bifocal").contains("--help");
    }
  }

  @Test
  void theVersionIsShown() {
    CommandRun run = CommandRun.of("", console -> Main.run(console, "--version"));

    assertThat(run.status()).isZero();
    assertThat(run.out()).startsWith("bifocal 0.");
  }
}

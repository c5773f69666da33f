package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.Main;
import bifocal.cli.command.CommandRun;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A captured step and a shadow's worst request, routed and run again by the commands. */
class CaptureTest {
  private static final JsonMapper JSON = new JsonMapper();

  @TempDir static Path folder;
  private static Path out;
  private static CommandRun run;

  @BeforeAll
  static void replays() throws IOException {
    out = folder.resolve("out");
    run =
        SmallReplay.in(
            folder, "--report=" + out, "--capture=1", "--shadow=REFERENCE", "--format=json");
    assertThat(run.status()).as(run.err() + run.out()).isZero();
  }

  @Test
  void capturedStepIsRoutedAsItWas() throws IOException {
    JsonNode routed =
        JSON.readTree(
            bifocal(
                    "route",
                    "--spec=" + out.resolve("step-1-sliding-0.safetensors"),
                    "--format=json")
                .out());
    JsonNode line = stepOne();
    assertThat(routed.get("route")).isEqualTo(line.get("route"));
    for (int r = 0; r < line.get("requests").size(); r++) {
      assertThat(routed.at("/requests/" + r + "/child"))
          .isEqualTo(line.at("/requests/" + r + "/child"));
      assertThat(routed.at("/requests/" + r + "/reason"))
          .isEqualTo(line.at("/requests/" + r + "/reason"));
    }
  }

  private static JsonNode stepOne() throws IOException {
    for (String line : Files.readAllLines(out.resolve("steps.jsonl"))) {
      JsonNode step = JSON.readTree(line);
      if (step.get("step").asInt() == 1 && step.get("group").asText().equals("sliding")) {
        return step;
      }
    }
    throw new AssertionError("no step 1");
  }

  @Test
  void capturedStepHoldsAChunkWithEarlierKeysAndRunsAgain() throws IOException {
    assertThat(stepOne().get("requests"))
        .anyMatch(
            request -> request.get("first").asInt() > 0 && request.get("query_len").asInt() > 1);
    CommandRun attended = attend(out.resolve("step-1-sliding-0.safetensors"));
    assertThat(attended.status()).as(attended.err() + attended.out()).isZero();
    assertThat(JSON.readTree(attended.out()).at("/route/route").asText()).isEqualTo("SPLIT");
  }

  @Test
  void worstRequestOfTheShadowIsACaseForAttend() throws IOException {
    JsonNode shadow = JSON.readTree(run.out()).get("shadow");
    assertThat(shadow.get("backend").asText()).isEqualTo("REFERENCE");
    assertThat(shadow.get("within").asBoolean()).isTrue();
    assertThat(shadow.get("worst_error").asDouble()).isPositive();
    CommandRun attended = attend(Path.of(shadow.get("recorded").asText()));
    assertThat(attended.status()).as(attended.err() + attended.out()).isZero();
    int compared = JSON.readTree(attended.out()).at("/check/compared").asInt();
    assertThat(compared).isEqualTo(32 * queries(shadow.get("at")));
  }

  /** Queries of the request that the shadow agrees on least. */
  private static int queries(JsonNode at) throws IOException {
    for (String line : Files.readAllLines(out.resolve("steps.jsonl"))) {
      JsonNode step = JSON.readTree(line);
      if (step.get("step").equals(at.get("step")) && step.get("group").equals(at.get("group"))) {
        for (JsonNode request : step.get("requests")) {
          if (request.get("request").equals(at.get("request"))) {
            return request.get("query_len").asInt();
          }
        }
      }
    }
    throw new AssertionError("no such request: " + at);
  }

  @Test
  void stepWithoutTensorsCanBeRoutedAndNotRun() throws IOException {
    Path bare = folder.resolve("bare");
    assertThat(
            SmallReplay.in(folder, "--report=" + bare, "--capture=0", "--no-capture-tensors")
                .status())
        .isZero();
    Path file = bare.resolve("step-0-full-0.safetensors");
    assertThat(bifocal("route", "--spec=" + file).status()).isZero();
    CommandRun attended = attend(file);
    assertThat(attended.status()).isEqualTo(2);
    assertThat(attended.out()).contains("MALFORMED_INPUT").contains("'q'");
  }

  @Test
  void aCapsuleThatIsCutIsCalledCut() throws IOException {
    byte[] whole = Files.readAllBytes(out.resolve("step-1-sliding-0.safetensors"));
    Path cut = folder.resolve("cut.safetensors");
    for (int length : new int[] {7, 8, 9, 100, whole.length - 1}) {
      Files.write(cut, Arrays.copyOf(whole, length));
      for (CommandRun refused : List.of(bifocal("route", "--spec=" + cut), attend(cut))) {
        assertThat(refused.status()).isEqualTo(2);
        assertThat(refused.err() + refused.out())
            .contains("'" + cut + "': the file is cut")
            .contains(length + " bytes")
            .doesNotContain("JSON");
      }
    }
  }

  @Test
  void stepThatNeverComesIsRefused() throws IOException {
    CommandRun refused =
        SmallReplay.in(folder, "--report=" + folder.resolve("late"), "--capture=99");
    assertThat(refused.status()).isEqualTo(2);
    assertThat(refused.err()).contains("--capture").contains("99");
  }

  @Test
  void tensorsWithoutACapturedStepCannotBeRouted() throws IOException {
    Path result = folder.resolve("result.safetensors");
    bifocal("attend", "--in=" + out.resolve("step-1-full-0.safetensors"), "--out=" + result);
    CommandRun refused = bifocal("route", "--spec=" + result);
    assertThat(refused.status()).isEqualTo(2);
    assertThat(refused.err()).contains("no captured step");
  }

  private static CommandRun attend(Path in) {
    return bifocal(
        "attend", "--in=" + in, "--out=" + folder.resolve("o.st"), "--check", "--format=json");
  }

  private static CommandRun bifocal(String... arguments) {
    return CommandRun.of("", console -> Main.run(console, arguments));
  }
}

package bifocal.cli.route;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.Main;
import bifocal.cli.command.CommandRun;
import com.fasterxml.jackson.databind.json.JsonMapper;
import java.io.IOException;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Damaged specifications are routed or refused, never anything else. */
class RouteSpecFuzzTest {
  private static final String SPEC =
      """
      {"policy":"mm-prefix","layers":{"sliding_window":4,"mask":"clamp_both"},"split":true,\
      "lowering":true,"live":2,"requests":[{"query_len":5,"seq_len":12,"images":[[0,8],[9,9]]},\
      {"query_len":1,"seq_len":3},{"query_len":0,"seq_len":0}]}\
      """;

  private static final List<String> PIECES =
      List.of(
          "0",
          "-1",
          "2147483647",
          "2147483648",
          "1e9",
          "1.5",
          "null",
          "true",
          "[",
          "]",
          "{",
          "}",
          ",",
          ":",
          "\"",
          "\\",
          "\\u0000",
          "[[3,7]]",
          "\"images\":",
          "\"live\":",
          "none",
          "\u00e9");

  @Test
  void damageIsRoutedOrRefused() throws IOException {
    long seed = 90_210L;
    Random random = new Random(seed);
    JsonMapper mapper = new JsonMapper();
    int routed = 0;
    int refused = 0;
    for (int i = 0; i < 1_500; i++) {
      String spec = damaged(random);
      CommandRun run =
          CommandRun.of(
              spec, console -> Main.run(console, "route", "--spec", "-", "--format", "json"));

      assertThat(run.status()).as("seed %d, spec %d: %s", seed, i, spec).isIn(0, 2);
      assertThat(run.err()).as("seed %d, spec %d: %s", seed, i, spec).isEmpty();
      assertThat(mapper.readTree(run.out()).has(run.status() == 0 ? "route" : "error"))
          .as("seed %d, spec %d: %s", seed, i, spec)
          .isTrue();
      routed += run.status() == 0 ? 1 : 0;
      refused += run.status() == 2 ? 1 : 0;
    }
    assertThat(routed).isGreaterThan(20);
    assertThat(refused).isGreaterThan(500);
  }

  private static String damaged(Random random) {
    StringBuilder spec = new StringBuilder(SPEC);
    int wounds = 1 + random.nextInt(3);
    for (int i = 0; i < wounds; i++) {
      int at = random.nextInt(spec.length());
      int end = Math.min(spec.length(), at + random.nextInt(6));
      String piece = PIECES.get(random.nextInt(PIECES.size()));
      switch (random.nextInt(5)) {
        case 0 -> spec.delete(at, end);
        case 1 -> spec.insert(at, piece);
        case 2 -> spec.replace(at, end, piece);
        case 3 -> spec.setLength(Math.max(at, 1));
        default -> replaceNumber(spec, at, piece);
      }
    }
    return spec.toString();
  }

  private static void replaceNumber(StringBuilder spec, int from, String piece) {
    for (int at = from; at < spec.length(); at++) {
      if (Character.isDigit(spec.charAt(at))) {
        spec.replace(at, at + 1, piece);
        return;
      }
    }
  }
}

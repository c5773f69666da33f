package bifocal.cli.replay;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cli.Main;
import bifocal.cli.command.CommandRun;
import bifocal.core.backend.BackendName;
import bifocal.core.bench.Calibration;
import bifocal.core.bench.CalibrationJson;
import bifocal.core.bench.ChildTime;
import bifocal.core.bench.Provenance;
import bifocal.core.error.BifocalException;
import bifocal.core.safetensors.Safetensors;
import bifocal.core.select.AttentionConfig;
import bifocal.core.select.AttentionConfigReader;
import bifocal.core.tensor.DType;
import io.vavr.collection.Vector;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Every reader of what users bring takes damaged input or refuses it with a typed error, and does
 * nothing else. The seed is printed; {@code -Dbifocal.seed=N} runs it again, and {@code
 * -Dbifocal.fuzz.seconds=N} says for how long.
 */
class ParserFuzzTest {
  private static final long SECONDS =
      Long.getLong("bifocal.fuzz.seconds", Boolean.getBoolean("bifocal.full") ? 300 : 12);
  private static final int ALONE = 4;
  private static final List<String> PIECES =
      List.of(
          "0",
          "-1",
          "1",
          "2147483647",
          "2147483648",
          "9223372036854775807",
          "1e999",
          "1.5",
          "NaN",
          "null",
          "true",
          "\"\"",
          "[",
          "]",
          "{",
          "}",
          ",",
          ":",
          "\"",
          "\\",
          "\\u0000",
          "\n",
          "\r",
          "\0",
          "é",
          "\uFEFF",
          "F32",
          "BF16",
          "I32",
          "data_offsets",
          "fp8_e4m3",
          "override",
          "CPU_ATTN",
          "+",
          "(",
          ")",
          "18446744073709551616");

  private static final String CALIBRATION =
      CalibrationJson.write(
          new Calibration(
              new Provenance("m", "d", "k", "j", "v", "c", "t", "x"),
              Vector.of(
                  new ChildTime(
                      BackendName.of("CPU_ATTN"),
                      DType.BF16,
                      64,
                      ChildTime.Phase.DECODE,
                      1,
                      64,
                      0.5))));

  /** A reader and something it reads. */
  private record Reader(String name, byte[] input, Taken reads) {}

  /** Returns whether the input was taken; a typed refusal may also be thrown. */
  @FunctionalInterface
  private interface Taken {
    boolean read(byte[] input) throws IOException;
  }

  @TempDir Path folder;

  @Test
  void damageIsTakenOrRefused() throws IOException {
    long seed = Long.getLong("bifocal.seed", new Random().nextLong());
    System.out.println("parsers: " + SECONDS + " s with seed " + seed);
    Random random = new Random(seed);
    List<Reader> readers = readers();
    for (Reader reader : readers) {
      assertThat(reader.reads().read(reader.input())).as("%s, undamaged", reader.name()).isTrue();
    }
    int[] taken = new int[readers.size()];
    int[] refused = new int[readers.size()];
    long end = System.nanoTime() + SECONDS * 1_000_000_000L;
    for (int i = 0; System.nanoTime() < end; i++) {
      // Commands take a hundred times as long as readers alone.
      int at = i % 10 == 0 ? i / 10 % readers.size() : i % ALONE;
      byte[] input = damaged(readers.get(at).input(), random);
      if (isTaken(readers.get(at), input, "seed " + seed + ", input " + i)) {
        taken[at]++;
      } else {
        refused[at]++;
      }
    }
    System.out.println("taken " + Arrays.toString(taken) + ", refused " + Arrays.toString(refused));
    assertThat(refused).as("each reader refuses some, seed %d", seed).doesNotContain(0);
  }

  private static boolean isTaken(Reader reader, byte[] input, String which) {
    try {
      return reader.reads().read(input);
    } catch (BifocalException refusal) {
      return false;
    } catch (Throwable wrong) {
      throw new AssertionError(
          reader.name() + ", " + which + ": " + HexFormat.of().formatHex(input), wrong);
    }
  }

  private List<Reader> readers() throws IOException {
    List<Reader> readers = new ArrayList<>();
    readers.add(
        new Reader(
            "trace",
            text("TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n1,4,90,3\n2,0,10,1\n"),
            input -> TraceFile.read(file("trace.csv", input)).requests().size() >= 0));
    readers.add(
        new Reader(
            "attention configuration",
            text("{\"backend\":\"FLASH_ATTN\",\"flash_attn_version\":3}"),
            input -> config(new String(input, StandardCharsets.UTF_8))));
    readers.add(new Reader("safetensors", capsule(), this::tensors));
    readers.add(
        new Reader(
            "calibration",
            text(CALIBRATION),
            input ->
                CalibrationJson.read(new String(input, StandardCharsets.UTF_8)).times().size()
                    > 0));
    readers.add(
        new Reader(
            "captured step, routed",
            capsule(),
            input -> command("route", "--spec", file("route.safetensors", input).toString())));
    readers.add(new Reader("captured step, run", capsule(), this::attended));
    readers.add(
        new Reader(
            "backend expression",
            text("FLEX_ATTENTION+CPU_ATTN"),
            input -> command("compose", first(input), "CPU_ATTN", "--platform=cpu")));
    readers.add(
        new Reader(
            "model",
            text("gemma-4-31b"),
            input -> command("select", "--model=" + word(input), "--platform=cpu")));
    return readers;
  }

  private static boolean config(String json) {
    AttentionConfig config = AttentionConfigReader.start().json(json).config();
    return config != null;
  }

  private boolean tensors(byte[] input) {
    try (Arena arena = Arena.ofConfined()) {
      Safetensors read = Safetensors.read(file("tensors.safetensors", input), arena);
      return read.tensors().forAll(tensor -> tensor._2().data().byteSize() >= 0);
    }
  }

  private boolean attended(byte[] input) {
    return command(
        "attend",
        "--in=" + file("attend.safetensors", input),
        "--out=" + folder.resolve("out.safetensors"));
  }

  /** Runs a command: done or refused, and never a fault. */
  private static boolean command(String... arguments) {
    CommandRun run = CommandRun.of("", console -> Main.run(console, arguments));
    assertThat(run.status()).as("%s%n%s", run.out(), run.err()).isIn(0, 2);
    assertThat(run.out() + run.err()).doesNotContain("\tat ");
    return run.status() == 0;
  }

  /** A first operand; what looks like an option would be one. */
  private static String first(byte[] input) {
    String word = word(input);
    return word.startsWith("-") || word.startsWith("@") ? "X" + word : word;
  }

  private static String word(byte[] input) {
    return new String(input, StandardCharsets.UTF_8).replace('\0', ' ');
  }

  /** One step of a small replay, with its tensors. */
  private byte[] capsule() throws IOException {
    Path out = folder.resolve("replay");
    Path capsule = out.resolve("step-0-sliding-0.safetensors");
    if (!Files.exists(capsule)) {
      CommandRun run = SmallReplay.in(folder, "--report=" + out, "--capture=0");
      assertThat(run.status()).as(run.err()).isZero();
    }
    return Files.readAllBytes(capsule);
  }

  private Path file(String name, byte[] input) {
    try {
      return Files.write(folder.resolve(name), input);
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  private static byte[] text(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** The head of a file is damaged most: there its structure is. */
  private static byte[] damaged(byte[] input, Random random) {
    byte[] damaged = input;
    int wounds = 1 + random.nextInt(3);
    for (int i = 0; i < wounds && damaged.length > 0; i++) {
      int head = random.nextInt(4) == 0 ? damaged.length : Math.min(damaged.length, 1200);
      int at = random.nextInt(head);
      int end = Math.min(damaged.length, at + random.nextInt(6));
      byte[] piece = text(PIECES.get(random.nextInt(PIECES.size())));
      damaged =
          switch (random.nextInt(6)) {
            case 0 -> joined(damaged, at, new byte[0], end);
            case 1 -> joined(damaged, at, piece, at);
            case 2 -> joined(damaged, at, piece, end);
            case 3 -> Arrays.copyOf(damaged, at);
            case 4 -> flipped(damaged, at, random);
            default -> number(damaged, at, piece);
          };
    }
    return damaged;
  }

  private static byte[] joined(byte[] input, int until, byte[] piece, int from) {
    byte[] joined = new byte[until + piece.length + input.length - from];
    System.arraycopy(input, 0, joined, 0, until);
    System.arraycopy(piece, 0, joined, until, piece.length);
    System.arraycopy(input, from, joined, until + piece.length, input.length - from);
    return joined;
  }

  private static byte[] flipped(byte[] input, int at, Random random) {
    byte[] flipped = input.clone();
    flipped[at] ^= (byte) (1 << random.nextInt(8));
    return flipped;
  }

  /** Another number in place of the next one. */
  private static byte[] number(byte[] input, int from, byte[] piece) {
    for (int at = from; at < input.length; at++) {
      if (input[at] >= '0' && input[at] <= '9') {
        int end = at;
        while (end < input.length && input[end] >= '0' && input[end] <= '9') {
          end++;
        }
        return joined(input, at, piece, end);
      }
    }
    return input;
  }
}

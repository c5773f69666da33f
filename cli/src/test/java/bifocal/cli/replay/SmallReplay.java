package bifocal.cli.replay;

import bifocal.cli.Main;
import bifocal.cli.command.CommandRun;
import bifocal.cli.command.Installed;
import bifocal.core.device.Platform;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** A replay of three short requests, two of them with images, that takes a moment. */
final class SmallReplay {
  private static final String TRACE =
      """
      TIMESTAMP,NumImages,ContextTokens,GeneratedTokens
      2024-10-16 08:36:00,1,40,3
      2024-10-16 08:36:01,0,12,4
      2024-10-16 08:36:02,4,52,2
      """;

  private SmallReplay() {}

  /** Runs it in a folder, with more options, or with other values of its own. */
  static CommandRun in(Path folder, String... options) throws IOException {
    Installed.require(Platform.CPU);
    Path trace = folder.resolve("trace.csv");
    Files.writeString(trace, TRACE);
    List<String> arguments =
        new ArrayList<>(
            List.of(
                "replay",
                "--trace=" + trace,
                "--first=0",
                "--requests=3",
                "--model=gemma-4-31b",
                "--image-tokens=8",
                "--max-num-batched-tokens=48"));
    arguments.removeIf(
        own -> List.of(options).stream().anyMatch(other -> name(other).equals(name(own))));
    arguments.addAll(List.of(options));
    return CommandRun.of("", console -> Main.run(console, arguments.toArray(String[]::new)));
  }

  private static String name(String option) {
    return option.split("=", 2)[0];
  }
}

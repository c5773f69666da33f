package bifocal.cuda.bench;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.control.Option;
import java.io.BufferedReader;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;

/**
 * The kernels of the installed PyTorch, timed by a script in a process of its own, in the same run.
 * Nothing but this benchmark starts Python.
 *
 * @param milliseconds medians by the work's title and the peer's name
 * @param versions of what was timed
 * @param note why there are none, empty when there are
 */
record GpuPeers(
    Map<String, Map<String, Double>> milliseconds, Map<String, String> versions, String note) {
  /** The script, in the folder of the peers. */
  static final String SCRIPT = "bench_peers.py";

  private static final ObjectMapper MAPPER = new ObjectMapper();

  private static GpuPeers none(String why) {
    return new GpuPeers(LinkedHashMap.empty(), LinkedHashMap.empty(), why);
  }

  /** Runs the script over some works. */
  static GpuPeers measure(Option<Path> folder, boolean quick, Consumer<String> progress) {
    if (folder.isEmpty()) {
      return none("no folder of peers was named");
    }
    Path script = folder.get().resolve(SCRIPT);
    if (!Files.isRegularFile(script)) {
      return none("nothing at " + script);
    }
    try {
      Path result = Files.createTempFile("bifocal-peers", ".json");
      ProcessBuilder builder =
          new ProcessBuilder("python3", script.toString(), "--out", result.toString());
      if (quick) {
        builder.command().add("--quick");
      }
      Process process = builder.redirectErrorStream(true).start();
      try (BufferedReader lines = new BufferedReader(process.inputReader(StandardCharsets.UTF_8))) {
        lines.lines().forEach(progress);
      }
      if (process.waitFor() != 0) {
        return none(script + " ended with " + process.exitValue());
      }
      return read(MAPPER.readTree(result.toFile()));
    } catch (IOException e) {
      return none("python3 does not run: " + e.getMessage());
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw BifocalException.of(ErrorCode.INTERNAL, "timing of the peers was interrupted")
          .causedBy(e);
    }
  }

  static GpuPeers read(JsonNode json) {
    Map<String, Map<String, Double>> found = LinkedHashMap.empty();
    for (JsonNode row : json.path("rows")) {
      String work = row.path("work").asText();
      Map<String, Double> known = found.getOrElse(work, LinkedHashMap.empty());
      found = found.put(work, known.put(row.path("kernel").asText(), row.path("ms").asDouble()));
    }
    Map<String, String> versions = LinkedHashMap.empty();
    for (java.util.Map.Entry<String, JsonNode> entry : json.path("versions").properties()) {
      versions = versions.put(entry.getKey(), entry.getValue().asText());
    }
    return new GpuPeers(found, versions, "");
  }

  /** Peers of one work. */
  Map<String, Double> of(GpuWork work) {
    return milliseconds.getOrElse(work.title(), LinkedHashMap.empty());
  }
}

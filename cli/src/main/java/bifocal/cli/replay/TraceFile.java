package bifocal.cli.replay;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.io.BufferedReader;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A trace of requests, as Azure publishes them: a header, then one request a line.
 *
 * @param name how results call the trace
 * @param requests in the file's order
 */
record TraceFile(String name, Seq<TraceRequest> requests) {
  private static final String SHIPPED = "azure-lmm-20241016-0836-2000req.csv";

  /** What a reader of results from the shipped trace must know. */
  static final Seq<String> CAUTIONS =
      Vector.of(
          "The window of the trace was chosen for being bursty: twice the week's mean request"
              + " rate.",
          "NumImages is very probably the square of the image count; --image-count says how it is"
              + " read.",
          "The trace has no image positions and no tokens per image; both are chosen here, seeded.",
          "The release holds as many requests with images as without; that mix is not natural.",
          "Prompts share no prefix in the trace; it has no sessions.");

  /** What the trace needs from whoever shows it. */
  static final String ATTRIBUTION =
      "Azure LMM inference trace 2025, Microsoft Azure, CC-BY 4.0; Qiu et al., ModServe, SoCC 2025";

  /**
   * One request.
   *
   * @param row 0-based, blank lines not counted
   * @param numImages as published
   * @param contextTokens tokens of the prompt, images included
   * @param generatedTokens tokens of the answer
   */
  record TraceRequest(
      int row, String timestamp, int numImages, int contextTokens, int generatedTokens) {}

  /** The window of the Azure trace that this command ships. */
  static TraceFile shipped() {
    try (InputStream in = TraceFile.class.getResourceAsStream(SHIPPED)) {
      if (in == null) {
        throw BifocalException.of(ErrorCode.INTERNAL, "the shipped trace is not in the jar");
      }
      return read(SHIPPED, in);
    } catch (IOException e) {
      throw BifocalException.of(
              ErrorCode.INTERNAL, "the shipped trace", FileFailure.reason(e), "to be read")
          .causedBy(e);
    }
  }

  /** A trace of the caller's. */
  static TraceFile read(Path file) {
    try (InputStream in = Files.newInputStream(file)) {
      return read(String.valueOf(file.getFileName()), in);
    } catch (IOException e) {
      throw FileFailure.reading("--trace", file, e).withRemedy("a trace is a CSV in UTF-8");
    }
  }

  private static TraceFile read(String name, InputStream in) throws IOException {
    Measured bytes = new Measured(in);
    BufferedReader lines =
        new BufferedReader(new InputStreamReader(bytes, StandardCharsets.UTF_8.newDecoder()));
    String header = lines.readLine();
    Columns columns = Columns.of(name, header == null ? "" : header);
    List<TraceRequest> requests = new ArrayList<>();
    int number = 1;
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      number++;
      if (!line.isBlank()) {
        requests.add(request(columns, requests.size(), number, line, lines, bytes));
      }
    }
    return new TraceFile(name, Vector.ofAll(requests));
  }

  private static TraceRequest request(
      Columns columns, int row, int number, String line, BufferedReader lines, Measured bytes)
      throws IOException {
    try {
      return columns.request(row, number, line);
    } catch (BifocalException e) {
      throw lines.readLine() == null && bytes.last != '\n'
          ? e.withRemedy("the file ends inside this line, after " + bytes.count + " bytes")
          : e;
    }
  }

  /** Remembers how much was read, and how it ended. */
  private static final class Measured extends FilterInputStream {
    private long count;
    private int last;

    Measured(InputStream in) {
      super(in);
    }

    @Override
    public int read(byte[] into, int offset, int length) throws IOException {
      int read = in.read(into, offset, length);
      if (read > 0) {
        count += read;
        last = into[offset + read - 1];
      }
      return read;
    }
  }

  /** Requests {@code first} to {@code first + count - 1}. */
  TraceFile window(int first, int count) {
    if (requests.isEmpty()) {
      throw BifocalException.of(
          ErrorCode.MALFORMED_INPUT, "trace " + name, "a header alone", "at least one request");
    }
    if (first < 0 || first >= requests.size()) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION,
          "--first",
          first,
          "0.." + (requests.size() - 1) + " of " + name);
    }
    int most = requests.size() - first;
    if (count < 1 || count > most) {
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION,
          "--requests",
          count,
          "1.." + most + ", the requests of " + name + " from row " + first);
    }
    return new TraceFile(name, requests.subSequence(first, first + count));
  }

  private record Columns(
      String name, int count, int timestamp, int images, int context, int generated) {
    static Columns of(String name, String header) {
      List<String> names = Arrays.asList(header.strip().split(",", -1));
      Columns columns =
          new Columns(
              name,
              names.size(),
              names.indexOf("TIMESTAMP"),
              names.indexOf("NumImages"),
              names.indexOf("ContextTokens"),
              names.indexOf("GeneratedTokens"));
      if (names.stream().distinct().count() < names.size()) {
        throw BifocalException.of(
            ErrorCode.MALFORMED_INPUT,
            "header of trace " + name,
            "'" + header + "'",
            "each column once");
      }
      if (columns.context < 0 || columns.generated < 0) {
        throw BifocalException.of(
            ErrorCode.MALFORMED_INPUT,
            "header of trace " + name,
            "'" + header + "'",
            "columns ContextTokens and GeneratedTokens, and NumImages where there are images");
      }
      return columns;
    }

    TraceRequest request(int row, int number, String line) {
      String[] cells = line.strip().split(",", -1);
      if (cells.length != count) {
        throw BifocalException.of(
            ErrorCode.MALFORMED_INPUT,
            where(number),
            cells.length + " cells",
            count + " as in the header");
      }
      TraceRequest request =
          new TraceRequest(
              row,
              timestamp < 0 ? "" : cells[timestamp],
              images < 0 ? 0 : number(number, "NumImages", cells[images], 0),
              number(number, "ContextTokens", cells[context], 1),
              number(number, "GeneratedTokens", cells[generated], 1));
      long tokens = (long) request.contextTokens() + request.generatedTokens();
      if (tokens > Integer.MAX_VALUE) {
        throw BifocalException.of(
            ErrorCode.OVERFLOW,
            "ContextTokens and GeneratedTokens in " + where(number),
            tokens + " together",
            "at most " + Integer.MAX_VALUE);
      }
      return request;
    }

    private int number(int line, String column, String cell, int least) {
      try {
        int value = Integer.parseInt(cell.strip());
        if (value >= least) {
          return value;
        }
      } catch (NumberFormatException e) {
        // Refused below, with the same words as a number out of range.
      }
      throw BifocalException.of(
          ErrorCode.MALFORMED_INPUT,
          column + " in " + where(line),
          "'" + cell + "'",
          "a whole number from " + least + " to " + Integer.MAX_VALUE);
    }

    private String where(int line) {
      return "line " + line + " of trace " + name;
    }
  }
}

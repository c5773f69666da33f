package bifocal.core.bench;

import io.vavr.control.Option;

/**
 * What was measured.
 *
 * @param text for people
 * @param json records, sequences, maps and absent values, to be written as JSON
 * @param page for the documentation, absent where there is none
 */
public record BenchmarkReport(String text, Object json, Option<Page> page) {

  /**
   * A section of a document.
   *
   * @param markdown of the section
   * @param plot a picture in SVG
   */
  public record Page(String markdown, String plot) {}

  /** A report without a page. */
  public BenchmarkReport(String text, Object json) {
    this(text, json, Option.none());
  }
}

package bifocal.core.bench;

/**
 * What was measured.
 *
 * @param text for people
 * @param json records, sequences, maps and absent values, to be written as JSON
 */
public record BenchmarkReport(String text, Object json) {}

package bifocal.core.bench;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.nio.file.Path;
import java.util.function.Consumer;

/**
 * What to measure.
 *
 * @param quick only what a few seconds allow
 * @param only a part of the names of the works to measure, absent for all
 * @param peers folder of the peers' libraries, absent when there is none
 * @param progress is told in a line what is under way
 * @param trace steps of a real trace, for works that want some
 */
public record BenchmarkRequest(
    boolean quick,
    Option<String> only,
    Option<Path> peers,
    Consumer<String> progress,
    Seq<TraceStep> trace) {

  /** Without a trace. */
  public BenchmarkRequest(
      boolean quick, Option<String> only, Option<Path> peers, Consumer<String> progress) {
    this(quick, only, peers, progress, Vector.empty());
  }

  /** Whether a work of this name is wanted. */
  public boolean wants(String work) {
    return only.forAll(work::contains);
  }

  /** For a suite that has no such work. */
  public BifocalException noSuchWork() {
    return BifocalException.of(
        ErrorCode.INVALID_OPTION, "--only", only.getOrElse(""), "a part of the name of a work");
  }
}

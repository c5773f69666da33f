package bifocal.benchmarks.cpu;

import io.vavr.collection.Map;
import io.vavr.collection.Seq;

/**
 * A run's results; its components are the keys of the JSON.
 *
 * @param composite steps of a trace
 * @param goals as far as their rows were measured
 * @param before the machine when the run began
 * @param after the machine when it ended
 * @param versions of the peers
 */
record CpuResults(
    Seq<Row> rows,
    Seq<WriteRow> writes,
    Seq<CompositeRow> composite,
    Seq<Goal> goals,
    Host before,
    Host after,
    Map<String, String> versions) {}

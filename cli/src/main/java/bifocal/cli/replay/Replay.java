package bifocal.cli.replay;

import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.cli.replay.Workload.Request;
import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.BatchLimits;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;

/**
 * Serves a workload: every step is scheduled once, then run by each backend, over the same queries,
 * keys and values.
 *
 * @param groups the model's layer groups
 * @param backends the first is the one replayed, the others are compared with it; each with its
 *     cache contract for each group
 * @param maxBatchedTokens query tokens of one step
 * @param maxSeqs requests of one step
 * @param platform where kernels run
 */
record Replay(
    Workload workload,
    Seq<LayerGroup> groups,
    Seq<Contender> backends,
    int maxBatchedTokens,
    int maxSeqs,
    long seed,
    Platform platform) {
  /** Bytes that one backend's caches may take. */
  private static final long CACHE_BYTES = 4L << 30;

  /** A backend, its cache contract for each group, and what is looked at while it runs. */
  record Contender(AttentionBackend<?> backend, Seq<KvCacheSpec> specs, Inspection inspection) {
    Contender inspected(Inspection by) {
      return new Contender(backend, specs, by);
    }
  }

  /**
   * What came out.
   *
   * @param records of every step, group and backend, in the order in which they ran
   * @param checksums by backend, one for each group
   * @param deferrals steps in which a request waited for room for its image
   */
  record Outcome(
      Seq<StepRecord> records,
      Map<BackendName, Seq<Checksum>> checksums,
      int steps,
      int deferrals,
      long nanos) {}

  /** Runs to the end. */
  Outcome run(Progress progress) {
    long start = System.nanoTime();
    List<StepRecord> records = new ArrayList<>();
    List<BackendRun> runs = new ArrayList<>();
    ContinuousBatching schedule = new ContinuousBatching(workload, maxBatchedTokens, maxSeqs);
    try (Arena arena = Arena.ofConfined()) {
      try {
        Seq<GroupInputs> inputs = inputs(arena);
        backends.forEach(contender -> runs.add(open(contender, inputs, arena)));
        int steps = 0;
        int ended = 0;
        for (Seq<Scheduled> step = next(schedule, runs);
            !step.isEmpty();
            step = next(schedule, runs)) {
          for (int group = 0; group < groups.size(); group++) {
            for (BackendRun run : runs) {
              records.add(run.run(group, steps, step));
            }
          }
          for (Scheduled scheduled : step.filter(Scheduled::last)) {
            runs.forEach(run -> run.end(scheduled.request().index()));
            ended++;
          }
          steps++;
          progress.at(steps, ended);
        }
        return new Outcome(
            Vector.ofAll(records),
            checksums(runs),
            steps,
            schedule.deferrals(),
            System.nanoTime() - start);
      } finally {
        runs.forEach(BackendRun::close);
      }
    }
  }

  private Seq<Scheduled> next(ContinuousBatching schedule, List<BackendRun> runs) {
    return Vector.ofAll(
        schedule.next(
            request -> {
              boolean room = runs.stream().allMatch(run -> run.hasRoomFor(request.positions()));
              if (room) {
                runs.forEach(run -> run.admit(request.index(), request.positions()));
              }
              return room;
            }));
  }

  private Seq<GroupInputs> inputs(Arena arena) {
    List<GroupInputs> inputs = new ArrayList<>();
    int firstLayer = 0;
    for (LayerGroup group : groups) {
      inputs.add(new GroupInputs(group, dense(group), firstLayer, maxBatchedTokens, seed, arena));
      firstLayer += group.layers().size();
    }
    return Vector.ofAll(inputs);
  }

  private static AttentionLayerSpec.Dense dense(LayerGroup group) {
    if (group.spec() instanceof AttentionLayerSpec.Dense dense) {
      return dense;
    }
    throw BifocalException.of(
        ErrorCode.MLA_NOT_EXECUTABLE,
        "layers of group " + group.name(),
        group.spec(),
        "dense layers");
  }

  private BackendRun open(Contender contender, Seq<GroupInputs> inputs, Arena arena) {
    int longest = workload.requests().map(Request::positions).max().getOrElse(1);
    return new BackendRun(
        contender.backend(),
        groups,
        inputs,
        contender.specs(),
        cachePositions(contender, longest),
        new BatchLimits(maxSeqs, maxBatchedTokens, longest),
        seed,
        contender.inspection(),
        platform,
        arena);
  }

  /** Room for the longest requests that may run at once, within the memory for caches. */
  private long cachePositions(Contender contender, int longest) {
    long wanted =
        workload
            .requests()
            .map(Request::positions)
            .sorted()
            .reverse()
            .take(maxSeqs)
            .sum()
            .longValue();
    double bytesPerPosition = 0;
    for (int g = 0; g < groups.size(); g++) {
      KvCacheSpec spec = contender.specs().get(g);
      bytesPerPosition +=
          (double) spec.blockBytes() / spec.blockSize() * groups.get(g).layers().size();
    }
    return Math.max(longest, Math.min(wanted, (long) (CACHE_BYTES / bytesPerPosition)));
  }

  private static Map<BackendName, Seq<Checksum>> checksums(List<BackendRun> runs) {
    Map<BackendName, Seq<Checksum>> checksums = LinkedHashMap.empty();
    for (BackendRun run : runs) {
      checksums = checksums.put(run.name(), run.groups().map(GroupRun::checksum));
    }
    return checksums;
  }
}

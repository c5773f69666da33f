package bifocal.cli.replay;

import bifocal.cli.replay.Workload.Request;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.function.Predicate;

/**
 * Schedules requests step by step: those that run go first, in the order they came; then the next
 * ones are admitted while there is a slot, room in the cache for all their positions, and budget.
 * Prompts are cut into chunks; an image never is. Nothing is preempted, so every request ends, and
 * a request that waits for budget waits only for those before it.
 */
final class ContinuousBatching {
  private final Deque<Request> waiting;
  private final List<Running> running = new ArrayList<>();
  private final int maxBatchedTokens;
  private final int maxSeqs;
  private int deferrals;

  /** What one request does in one step: queries at {@code first .. first + count - 1}. */
  record Scheduled(Request request, int first, int count) {
    /** Keys there are after the step's were written. */
    int seqLen() {
      return first + count;
    }

    /** Whether the prompt was complete before this step. */
    boolean decode() {
      return first >= request.promptTokens();
    }

    /** Whether the request ends with this step. */
    boolean last() {
      return seqLen() == request.positions();
    }

    /** Whether a query lies in an image. */
    boolean hasImageQuery() {
      for (int i = 0; i < request.imageCount(); i++) {
        if (request.images()[2 * i] < seqLen() && request.images()[2 * i + 1] >= first) {
          return true;
        }
      }
      return false;
    }
  }

  private static final class Running {
    private final Request request;
    private int computed;

    private Running(Request request) {
      this.request = request;
    }
  }

  ContinuousBatching(Workload workload, int maxBatchedTokens, int maxSeqs) {
    this.waiting = new ArrayDeque<>(workload.requests().asJava());
    this.maxBatchedTokens = maxBatchedTokens;
    this.maxSeqs = maxSeqs;
  }

  /**
   * The next step; empty when all requests are done.
   *
   * @param admits whether the cache has room for all of a request's positions; room it grants is
   *     taken
   */
  List<Scheduled> next(Predicate<Request> admits) {
    List<Scheduled> step = new ArrayList<>();
    int budget = maxBatchedTokens;
    for (Running run : running) {
      budget -= schedule(run, budget, step);
    }
    while (budget > 0
        && running.size() < maxSeqs
        && !waiting.isEmpty()
        && admits.test(waiting.element())) {
      Running admitted = new Running(waiting.remove());
      running.add(admitted);
      budget -= schedule(admitted, budget, step);
    }
    running.removeIf(run -> run.computed == run.request.positions());
    return step;
  }

  /** Times a request waited a step because the image before it did not fit the budget left. */
  int deferrals() {
    return deferrals;
  }

  private int schedule(Running run, int budget, List<Scheduled> step) {
    int count = chunk(run.request, run.computed, budget);
    if (count > 0) {
      step.add(new Scheduled(run.request, run.computed, count));
      run.computed += count;
    } else if (budget > 0) {
      deferrals++;
    }
    return count;
  }

  /** Queries from {@code first} on that fit the budget and leave no image half computed. */
  static int chunk(Request request, int first, int budget) {
    int end = first + Math.min(budget, Math.max(1, request.promptTokens() - first));
    end = budget == 0 ? first : end;
    for (int i = 0; i < request.imageCount(); i++) {
      int imageFirst = request.images()[2 * i];
      int imageLast = request.images()[2 * i + 1];
      if (imageFirst < end && end <= imageLast) {
        return Math.max(imageFirst, first) - first;
      }
    }
    return end - first;
  }
}

package bifocal.cli.replay;

import bifocal.cli.replay.ContinuousBatching.Scheduled;
import bifocal.cli.replay.StepRecord.Check;
import bifocal.core.backend.AttentionOutput;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.layer.LayerParameters;
import bifocal.core.route.Child;
import bifocal.core.route.Route;
import bifocal.core.tensor.TensorView;
import bifocal.reference.Agreement;
import bifocal.reference.QueryHead;
import bifocal.reference.ReferenceAttention;
import bifocal.reference.ReferenceRow;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

/**
 * Compares a few outputs of each step with the reference: one request of each child, preferably one
 * with an image query, two of its query tokens, two heads, all keys. The choice is seeded.
 */
final class StepCheck {
  private static final int TOKENS = 2;
  private static final int HEADS = 2;

  private final ReferenceAttention reference;
  private final GroupInputs inputs;
  private final long seed;

  StepCheck(GroupInputs inputs, long seed) {
    this.reference = ReferenceAttention.of(inputs.layer(), LayerParameters.NONE);
    this.inputs = inputs;
    this.seed = seed;
  }

  /** What is compared in one step: the reference's rows, computed once for all backends. */
  record Sample(int request, Option<Child> child, int queryTokens, Seq<ReferenceRow> rows) {
    Check against(TensorView out) {
      Agreement agreement = Agreement.of(rows, AttentionOutput.of(out));
      return new Check(request, child, queryTokens, agreement.compared(), agreement.error());
    }
  }

  /** Chooses and computes the rows of one step and layer. */
  Seq<Sample> sample(
      int step,
      int layer,
      Seq<Scheduled> requests,
      CommonAttentionMetadata batch,
      Option<Route> route) {
    Seq<Option<Child>> children =
        route.isDefined()
            ? Vector.of(Option.some(Child.A), Option.some(Child.B))
            : Vector.of(Option.none());
    SplittableRandom random = new SplittableRandom(seed + 1_000_003L * step + layer);
    Seq<Sample> samples = Vector.empty();
    for (Option<Child> child : children) {
      Seq<Integer> candidates = candidates(requests, route, child);
      if (candidates.nonEmpty()) {
        int request = candidates.get(random.nextInt(candidates.size()));
        samples = samples.append(sample(request, child, layer, requests, batch, random));
      }
    }
    return samples;
  }

  private static Seq<Integer> candidates(
      Seq<Scheduled> requests, Option<Route> route, Option<Child> child) {
    Seq<Integer> all =
        Vector.range(0, requests.size())
            .filter(r -> child.isEmpty() || route.get().requests().child(r) == child.get());
    Seq<Integer> withImages = all.filter(r -> requests.get(r).hasImageQuery());
    return withImages.isEmpty() ? all : withImages;
  }

  private Sample sample(
      int request,
      Option<Child> child,
      int layer,
      Seq<Scheduled> requests,
      CommonAttentionMetadata batch,
      SplittableRandom random) {
    Scheduled scheduled = requests.get(request);
    List<Integer> positions = new ArrayList<>();
    for (int i = 0; i < Math.min(TOKENS, scheduled.count()); i++) {
      positions.add(position(scheduled, i, random));
    }
    int heads = Math.min(HEADS, inputs.layer().numHeads());
    int firstHead = random.nextInt(inputs.layer().numHeads());
    int step = Math.max(1, inputs.layer().numHeads() / heads);
    List<QueryHead> pairs = new ArrayList<>();
    for (int h = 0; h < heads; h++) {
      int head = (firstHead + h * step) % inputs.layer().numHeads();
      for (int position : positions) {
        int row = batch.queryStart(request) + position - scheduled.first();
        pairs.add(new QueryHead(row, head));
      }
    }
    Seq<ReferenceRow> rows =
        reference.chosen(
            inputs.queries(batch.tokens()), inputs.reference(layer, requests), batch, pairs);
    return new Sample(scheduled.request().index(), child, positions.size(), rows);
  }

  /** The first token comes from an image where one is scheduled; the rest from anywhere. */
  private static int position(Scheduled scheduled, int i, SplittableRandom random) {
    if (i == 0 && scheduled.hasImageQuery()) {
      List<int[]> parts = new ArrayList<>();
      int[] images = scheduled.request().images();
      for (int image = 0; image < images.length; image += 2) {
        int first = Math.max(images[image], scheduled.first());
        int last = Math.min(images[image + 1], scheduled.seqLen() - 1);
        if (first <= last) {
          parts.add(new int[] {first, last});
        }
      }
      int[] part = parts.get(random.nextInt(parts.size()));
      return random.nextInt(part[0], part[1] + 1);
    }
    return random.nextInt(scheduled.first(), scheduled.seqLen());
  }
}

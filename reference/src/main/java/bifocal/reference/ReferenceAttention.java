package bifocal.reference;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.ArrayList;
import java.util.List;

/**
 * Attention of one layer straight from its definition, in double: each logit is {@code scale·q·k},
 * then capped, then moved by ALiBi; the visible ones and the sink share one softmax. Masked keys
 * and values are not read at all. It is slow on purpose and the judge of everything that is fast.
 */
public final class ReferenceAttention {
  private final AttentionLayerSpec.Dense layer;
  private final double[] sinks;
  private final double[] slopes;

  private ReferenceAttention(AttentionLayerSpec.Dense layer, double[] sinks, double[] slopes) {
    this.layer = layer;
    this.sinks = sinks;
    this.slopes = slopes;
  }

  /** The attention of a layer that has no weights of attention's own. */
  public static ReferenceAttention of(AttentionLayerSpec.Dense layer) {
    return of(layer, LayerParameters.NONE);
  }

  /**
   * The attention of a layer.
   *
   * @throws BifocalException {@code SHAPE_MISMATCH} when a parameter that the layer asks for is
   *     missing or has another size than the heads
   */
  public static ReferenceAttention of(AttentionLayerSpec.Dense layer, LayerParameters parameters) {
    return new ReferenceAttention(
        layer,
        perHead("sinks", layer.sinks(), parameters.sinks(), layer.numHeads()),
        perHead("ALiBi slopes", layer.alibi(), parameters.alibiSlopes(), layer.numHeads()));
  }

  private static double[] perHead(
      String name, boolean wanted, Option<TensorView> tensor, int heads) {
    if (!wanted) {
      return new double[0];
    }
    TensorView given =
        tensor.getOrElseThrow(
            () -> BifocalException.of(ErrorCode.SHAPE_MISMATCH, name, "none", "[" + heads + "]"));
    given.require(name, DType.FP32, given.device(), heads);
    HostTensor numbers = HostTensor.over(given);
    double[] values = new double[heads];
    for (int head = 0; head < heads; head++) {
      values[head] = numbers.at(head);
    }
    return values;
  }

  /** The layer. */
  public AttentionLayerSpec.Dense layer() {
    return layer;
  }

  /**
   * Every output of a batch's live requests, in the order of requests, KV heads, query tokens.
   *
   * @param q {@code [queryTokens, numHeads, headSize]}
   */
  public Seq<ReferenceRow> all(TensorView q, KeyValues kv, CommonAttentionMetadata batch) {
    HostTensor queries = queries(q, batch);
    List<ReferenceRow> rows = new ArrayList<>();
    for (int request = 0; request < batch.live(); request++) {
      if (batch.queryLen(request) == 0) {
        continue;
      }
      for (int kvHead = 0; kvHead < layer.numKvHeads(); kvHead++) {
        Sequence sequence = sequence(kv, batch, request, kvHead);
        for (int i = 0; i < batch.queryLen(request); i++) {
          for (int g = 0; g < layer.groupSize(); g++) {
            int head = kvHead * layer.groupSize() + g;
            rows.add(sequence.attend(queries, batch.queryStart(request) + i, head));
          }
        }
      }
    }
    return Vector.ofAll(rows);
  }

  /**
   * Chosen outputs. Pairs of one request and KV head that follow each other share the work of
   * reading keys and values.
   *
   * @throws BifocalException {@code SHAPE_MISMATCH} when a query token belongs to no live request
   */
  public Seq<ReferenceRow> chosen(
      TensorView q, KeyValues kv, CommonAttentionMetadata batch, Iterable<QueryHead> pairs) {
    HostTensor queries = queries(q, batch);
    List<ReferenceRow> rows = new ArrayList<>();
    Option<Sequence> last = Option.none();
    for (QueryHead pair : pairs) {
      int request = requestOf(batch, pair.queryToken());
      int kvHead = pair.head() / layer.groupSize();
      Sequence sequence =
          last.filter(s -> s.request == request && s.kvHead == kvHead)
              .getOrElse(() -> sequence(kv, batch, request, kvHead));
      last = Option.some(sequence);
      rows.add(sequence.attend(queries, pair.queryToken(), pair.head()));
    }
    return Vector.ofAll(rows);
  }

  private HostTensor queries(TensorView q, CommonAttentionMetadata batch) {
    q.require("q", layer.dtype(), q.device(), -1, layer.numHeads(), layer.headSize());
    if (q.size(0) < batch.tokens()) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH, "rows of q", q.size(0), "at least " + batch.tokens());
    }
    return HostTensor.over(q);
  }

  private static int requestOf(CommonAttentionMetadata batch, int queryToken) {
    for (int request = 0; request < batch.live(); request++) {
      int at = queryToken - batch.queryStart(request);
      if (at >= 0 && at < batch.queryLen(request)) {
        return request;
      }
    }
    throw BifocalException.of(
        ErrorCode.SHAPE_MISMATCH, "query token", queryToken, "a token of a live request");
  }

  private Sequence sequence(KeyValues kv, CommonAttentionMetadata batch, int request, int kvHead) {
    int keys = batch.seqLen(request);
    float[][] key = new float[keys][layer.headSize()];
    float[][] value = new float[keys][layer.headSizeV()];
    for (int position = 0; position < keys; position++) {
      kv.readKey(request, position, kvHead, key[position]);
      kv.readValue(request, position, kvHead, value[position]);
    }
    return new Sequence(
        request,
        kvHead,
        batch.firstPosition(request) - batch.queryStart(request),
        RequestMask.of(batch, request, layer.mask()),
        key,
        value);
  }

  /** Keys and values of one request and KV head. */
  private final class Sequence {
    private final int request;
    private final int kvHead;
    private final int rowToPosition;
    private final RequestMask mask;
    private final float[][] key;
    private final float[][] value;
    private final double[] logit;
    private final int[] visible;

    private Sequence(
        int request,
        int kvHead,
        int rowToPosition,
        RequestMask mask,
        float[][] key,
        float[][] value) {
      this.request = request;
      this.kvHead = kvHead;
      this.rowToPosition = rowToPosition;
      this.mask = mask;
      this.key = key;
      this.value = value;
      this.logit = new double[key.length];
      this.visible = new int[key.length];
    }

    private ReferenceRow attend(HostTensor queries, int queryToken, int head) {
      double[] query = new double[layer.headSize()];
      for (int d = 0; d < query.length; d++) {
        query[d] = queries.at(queryToken, head, d);
      }
      int position = queryToken + rowToPosition;
      int count = 0;
      double largest = sinks.length > 0 ? sinks[head] : Double.NEGATIVE_INFINITY;
      for (int k = 0; k < key.length; k++) {
        if (mask.sees(position, k)) {
          logit[k] = logit(query, k, position, head);
          largest = Math.max(largest, logit[k]);
          visible[count++] = k;
        }
      }
      return softmax(new QueryHead(queryToken, head), count, largest);
    }

    private double logit(double[] query, int k, int position, int head) {
      double x = layer.scale() * dot(query, key[k]);
      if (layer.softcap().isDefined()) {
        double cap = layer.softcap().get();
        x = cap * Math.tanh(x / cap);
      }
      return slopes.length > 0 ? x + slopes[head] * ((double) k - position) : x;
    }

    private ReferenceRow softmax(QueryHead at, int count, double largest) {
      double[] out = new double[layer.headSizeV()];
      if (largest == Double.NEGATIVE_INFINITY) {
        return new ReferenceRow(at, out, Double.NEGATIVE_INFINITY);
      }
      double sum = sinks.length > 0 ? Math.exp(sinks[at.head()] - largest) : 0;
      for (int i = 0; i < count; i++) {
        float[] row = value[visible[i]];
        double weight = Math.exp(logit[visible[i]] - largest);
        sum += weight;
        for (int d = 0; d < out.length; d++) {
          out[d] += weight * row[d];
        }
      }
      for (int d = 0; d < out.length; d++) {
        out[d] /= sum;
      }
      return new ReferenceRow(at, out, largest + Math.log(sum));
    }
  }

  private static double dot(double[] a, float[] b) {
    double even = 0;
    double odd = 0;
    int d = 0;
    for (; d + 1 < a.length; d += 2) {
      even += a[d] * b[d];
      odd += a[d + 1] * b[d + 1];
    }
    return d < a.length ? even + odd + a[d] * b[d] : even + odd;
  }
}

package bifocal.cli.attend;

import bifocal.core.batch.ImageRanges;
import bifocal.core.cache.KvScales;
import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.NearestName;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.LayerParameters;
import bifocal.core.safetensors.Safetensors;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.reference.HostTensor;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;

/**
 * A case as its file describes it, checked as a whole.
 *
 * @param layer the layer
 * @param parameters sinks and slopes, if any
 * @param q {@code [Σ query_len, numHeads, headSize]}
 * @param k {@code [Σ seq_len, numKvHeads, headSize]}
 * @param v {@code [Σ seq_len, numKvHeads, headSizeV]}
 * @param queryLens queries of each request
 * @param seqLens keys of each request
 * @param images images of each request
 * @param blockSize tokens per block, if the case says
 * @param scales of a quantised cache
 */
record AttendCase(
    Dense layer,
    LayerParameters parameters,
    TensorView q,
    TensorView k,
    TensorView v,
    int[] queryLens,
    int[] seqLens,
    ImageRanges images,
    Option<Integer> blockSize,
    KvScales scales) {
  private static final Seq<String> TENSORS =
      Vector.of("q", "k", "v", "query_lens", "seq_lens", "images", "sinks", "alibi_slopes");
  private static final int LATENT_HEAD_SIZE = 576;

  /**
   * Understands a file.
   *
   * @throws BifocalException what is wrong with it, and which request where one is at fault
   */
  static AttendCase of(Safetensors file) {
    for (String name : file.tensors().keySet()) {
      if (!TENSORS.contains(name)) {
        throw BifocalException.of(
            ErrorCode.INVALID_OPTION,
            "unknown tensor '" + name + "'; " + NearestName.adviceElseAll(name, TENSORS));
      }
    }
    AttendSettings settings = new AttendSettings(file.metadata());
    TensorView q = tensor(file.tensors(), "q", 3);
    TensorView k = tensor(file.tensors(), "k", 3);
    requireDense(file.tensors(), q, k);
    TensorView v = tensor(file.tensors(), "v", 3);
    int[] queryLens = ints(file.tensors(), "query_lens");
    int[] seqLens = ints(file.tensors(), "seq_lens");
    Dense layer = layer(q, k, v, file.tensors(), settings);
    requireLengths(queryLens, seqLens, q, k);
    return new AttendCase(
        layer,
        new LayerParameters(
            perHead(file.tensors(), "sinks", layer.numHeads()),
            perHead(file.tensors(), "alibi_slopes", layer.numHeads())),
        q,
        k,
        v,
        queryLens,
        seqLens,
        images(file.tensors(), queryLens.length),
        settings.blockSize(),
        settings.scales());
  }

  private static Dense layer(
      TensorView q,
      TensorView k,
      TensorView v,
      Map<String, TensorView> tensors,
      AttendSettings settings) {
    Dense layer =
        new Dense(
            size("query heads", q.size(1)),
            size("KV heads", k.size(1)),
            size("head size", q.size(2)),
            size("value head size", v.size(2)),
            requireNumbers("q", q),
            settings.kvCacheDtype(),
            AttentionType.DECODER,
            settings.mask(),
            settings.scale().getOrElse(() -> Math.pow((double) q.size(2), -0.5)),
            settings.softcap(),
            tensors.containsKey("alibi_slopes"),
            tensors.containsKey("sinks"));
    k.require("k", layer.dtype(), Device.HOST, -1, layer.numKvHeads(), layer.headSize());
    v.require("v", layer.dtype(), Device.HOST, k.size(0), layer.numKvHeads(), layer.headSizeV());
    return layer;
  }

  /** A latent cache has one head of 576 elements and no values of its own. */
  private static void requireDense(Map<String, TensorView> tensors, TensorView q, TensorView k) {
    if (!tensors.containsKey("v")
        && q.size(2) == LATENT_HEAD_SIZE
        && k.size(2) == LATENT_HEAD_SIZE
        && k.size(1) == 1) {
      throw BifocalException.of(
          ErrorCode.MLA_NOT_EXECUTABLE,
          "latent attention (k of one head with 576 elements, no v)",
          "no kernel here runs it",
          "q, k and v");
    }
  }

  private static void requireLengths(int[] queryLens, int[] seqLens, TensorView q, TensorView k) {
    if (queryLens.length != seqLens.length) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "seq_lens",
          seqLens.length + " requests",
          queryLens.length + ", as query_lens");
    }
    for (int r = 0; r < queryLens.length; r++) {
      if (queryLens[r] < 0 || seqLens[r] < 0) {
        throw BifocalException.ofRequest(
            ErrorCode.NEGATIVE,
            r,
            "query_len " + queryLens[r] + ", seq_len " + seqLens[r],
            "at least 0");
      }
      if (queryLens[r] > seqLens[r]) {
        throw BifocalException.ofRequest(
            ErrorCode.QUERY_EXCEEDS_SEQ,
            r,
            "query_len " + queryLens[r],
            "at most seq_len " + seqLens[r]);
      }
    }
    requireRows("q", q, "query_lens", queryLens);
    requireRows("k and v", k, "seq_lens", seqLens);
  }

  private static void requireRows(String name, TensorView tensor, String lens, int[] lengths) {
    long sum = Vector.ofAll(lengths).map(Integer::longValue).sum().longValue();
    if (sum > Integer.MAX_VALUE) {
      throw BifocalException.of(
          ErrorCode.OVERFLOW, "sum of " + lens, sum, "at most " + Integer.MAX_VALUE);
    }
    if (tensor.size(0) != sum) {
      throw BifocalException.of(
          ErrorCode.SHAPE_MISMATCH,
          "rows of " + name,
          tensor.size(0),
          "the sum of " + lens + ", " + sum);
    }
  }

  private static ImageRanges images(Map<String, TensorView> tensors, int requests) {
    if (!tensors.containsKey("images")) {
      return ImageRanges.NONE;
    }
    TensorView images = tensors.get("images").get();
    images.require("images", DType.INT32, Device.HOST, -1, 3);
    int[][] bounds = new int[requests][0];
    for (long i = 0; i < images.size(0); i++) {
      int request = intAt(images, 3 * i);
      if (request < 0 || request >= requests) {
        throw BifocalException.of(
            ErrorCode.INVALID_PARAMETER, "request of image " + i, request, "0.." + (requests - 1));
      }
      bounds[request] =
          appended(bounds[request], intAt(images, 3 * i + 1), intAt(images, 3 * i + 2));
    }
    return ImageRanges.of(bounds, requests);
  }

  private static int[] appended(int[] bounds, int first, int last) {
    int[] longer = Arrays.copyOf(bounds, bounds.length + 2);
    longer[bounds.length] = first;
    longer[bounds.length + 1] = last;
    return longer;
  }

  private static Option<TensorView> perHead(
      Map<String, TensorView> tensors, String name, int heads) {
    return tensors
        .get(name)
        .map(tensor -> tensor.require(name, DType.FP32, Device.HOST, heads))
        .peek(tensor -> requireFinite(name, HostTensor.over(tensor)));
  }

  private static void requireFinite(String name, HostTensor numbers) {
    for (long i = 0; i < numbers.view().size(0); i++) {
      if (!Float.isFinite(numbers.at(i))) {
        throw BifocalException.of(
            ErrorCode.NOT_FINITE, name + " of head " + i, numbers.at(i), "a finite number");
      }
    }
  }

  private static TensorView tensor(Map<String, TensorView> tensors, String name, int rank) {
    TensorView tensor =
        tensors
            .get(name)
            .getOrElseThrow(
                () ->
                    BifocalException.of(
                        ErrorCode.MALFORMED_INPUT, "there is no tensor '" + name + "'"));
    if (tensor.rank() != rank) {
      throw BifocalException.of(ErrorCode.SHAPE_MISMATCH, name, tensor, rank + " dimensions");
    }
    return tensor;
  }

  private static DType requireNumbers(String name, TensorView tensor) {
    return switch (tensor.dtype()) {
      case FP32, FP16, BF16 -> tensor.dtype();
      case FP8_E4M3, FP8_E5M2, INT8, UINT8, INT32, INT64 ->
          throw BifocalException.of(
              ErrorCode.DTYPE_MISMATCH, name, tensor.dtype(), "fp32, fp16 or bf16");
    };
  }

  private static int[] ints(Map<String, TensorView> tensors, String name) {
    TensorView tensor = tensor(tensors, name, 1);
    tensor.require(name, DType.INT32, Device.HOST, -1);
    int[] values = new int[size(name, tensor.size(0))];
    for (int i = 0; i < values.length; i++) {
      values[i] = intAt(tensor, i);
    }
    return values;
  }

  private static int intAt(TensorView tensor, long i) {
    return tensor.data().getAtIndex(ValueLayout.JAVA_INT_UNALIGNED, i);
  }

  private static int size(String name, long value) {
    if (value > Integer.MAX_VALUE) {
      throw BifocalException.of(ErrorCode.OVERFLOW, name, value, "at most " + Integer.MAX_VALUE);
    }
    return (int) value;
  }

  /** Longest sequence. */
  int maxSeqLen() {
    return Vector.ofAll(seqLens).max().getOrElse(0);
  }
}

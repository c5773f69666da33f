package bifocal.cli.route;

import bifocal.cli.command.CliFailure;
import bifocal.cli.command.JsonFields;
import bifocal.cli.command.PolicyName;
import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.capsule.StepCapsule;
import bifocal.core.error.ErrorCode;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.ImageMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.route.Route;
import bifocal.core.route.RoutingPolicy;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.routing.Lowering;
import io.vavr.collection.Array;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** A batch, the mask of the layers that will run it, and the policy to route it by. */
record RouteSpec(RoutingPolicy policy, LayerGroup layers, CommonAttentionMetadata batch) {
  /** What layers are when only routes by images are asked for. */
  private static final int USUAL_HEAD_SIZE = 64;

  private static final Seq<DType> TYPES = Vector.of(DType.BF16, DType.FP16, DType.FP32);

  /**
   * Reads a specification; see the command's documentation for its keys.
   *
   * @param source what messages call the text
   */
  static RouteSpec read(String source, InputStream in) throws IOException {
    return of(JsonFields.read("spec", source, in));
  }

  /** Reads the specification in a step's capsule. */
  static RouteSpec ofCapsule(String source, String json) throws IOException {
    JsonFields capsule =
        JsonFields.read(
            StepCapsule.KEY,
            source + ", " + StepCapsule.KEY,
            new ByteArrayInputStream(json.getBytes(StandardCharsets.UTF_8)));
    return of(capsule.allow("backend", "step", "group", "layer", "route", "spec").object("spec"));
  }

  private static RouteSpec of(JsonFields given) {
    JsonFields spec = given.allow("policy", "layers", "split", "lowering", "live", "requests");
    JsonFields layers = spec.object("layers").allow("sliding_window", "mask", "head_size", "dtype");
    AttentionMask mask = mask(layers);
    PolicyName policy =
        PolicyName.of(spec.name("policy", PolicyName.MM_PREFIX.label(), PolicyName.labels()));
    // No child is known here that would lack a right window.
    Lowering lowering = spec.flag("lowering", false) ? Lowering.BOTH_WINDOWS : Lowering.OFF;
    return new RouteSpec(
        policy.policy(spec.flag("split", true), lowering),
        LayerGroup.of("given", Dense.decoder(1, 1, headSize(layers), dtype(layers), mask)),
        batch(spec, mask));
  }

  private static int headSize(JsonFields layers) {
    return layers.optionalCount("head_size").getOrElse(USUAL_HEAD_SIZE);
  }

  private static DType dtype(JsonFields layers) {
    String name = layers.name("dtype", DType.BF16.label(), TYPES.map(DType::label));
    return TYPES.find(type -> type.label().equals(name)).get();
  }

  /** The same batch by another policy. */
  RouteSpec routedBy(RoutingPolicy other) {
    return new RouteSpec(other, layers, batch);
  }

  /** Where the batch goes. */
  Route route() {
    return policy.route(layers, batch);
  }

  private static AttentionMask mask(JsonFields layers) {
    ImageMask images =
        ImageMask.valueOf(
            layers
                .name(
                    "mask",
                    ImageMask.NONE.label(),
                    Array.of(ImageMask.values()).map(ImageMask::label))
                .toUpperCase(Locale.ROOT));
    Option<Integer> window = layers.optionalCount("sliding_window");
    return new AttentionMask(true, window, images, Option.none());
  }

  private static CommonAttentionMetadata batch(JsonFields spec, AttentionMask mask) {
    int requests = spec.elements("requests").size();
    int live = spec.optionalCount("live").getOrElse(requests);
    if (live > requests) {
      throw CliFailure.of(
          ErrorCode.LIVE_EXCEEDS_REQUESTS,
          "spec.live: " + live + ", wanted at most the number of requests, " + requests);
    }
    int[] queryStartLoc = new int[live + 1];
    int[] seqLens = new int[live];
    int[][] images = new int[live][];
    for (int r = 0; r < live; r++) {
      JsonFields request = request(spec, r);
      queryStartLoc[r + 1] = queryEnd(queryStartLoc[r], request.count("query_len"), r);
      seqLens[r] = request.count("seq_len");
      images[r] = request.pairs("images", mask.seesImages());
    }
    return CommonAttentionMetadata.builder(
            queryStartLoc,
            seqLens,
            TensorView.ofHost(MemorySegment.NULL, DType.INT32, live, 0),
            new SlotMapping(TensorView.ofHost(MemorySegment.NULL, DType.INT64, 0)))
        .images(mask.seesImages() ? ImageRanges.of(images, live) : ImageRanges.NONE)
        .build();
  }

  private static JsonFields request(JsonFields spec, int index) {
    return spec.inRequest(index).element("requests", index).allow("query_len", "seq_len", "images");
  }

  private static int queryEnd(int start, int queryLen, int request) {
    long end = (long) start + queryLen;
    if (end > Integer.MAX_VALUE) {
      throw CliFailure.of(
              ErrorCode.OVERFLOW,
              "queries up to request "
                  + request
                  + ": "
                  + end
                  + ", wanted at most "
                  + Integer.MAX_VALUE)
          .inRequest(request);
    }
    return (int) end;
  }
}

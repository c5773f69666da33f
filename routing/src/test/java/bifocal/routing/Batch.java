package bifocal.routing;

import bifocal.core.batch.CommonAttentionMetadata;
import bifocal.core.batch.ImageRanges;
import bifocal.core.batch.SlotMapping;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.layer.LayerGroup;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.List;

/**
 * A batch as tests write it down.
 *
 * @param live requests that are not padding
 */
record Batch(int live, List<Request> requests) {

  /**
   * One request.
   *
   * @param images first and last position of each image, one after the other
   */
  record Request(int queryLen, int seqLen, int... images) {
    int imageCount() {
      return images.length / 2;
    }

    int first(int image) {
      return images[2 * image];
    }

    int last(int image) {
      return images[2 * image + 1];
    }

    @Override
    public String toString() {
      return "{" + queryLen + " of " + seqLen + ", images " + Arrays.toString(images) + "}";
    }
  }

  static Batch of(Request... requests) {
    return new Batch(requests.length, List.of(requests));
  }

  static Batch of(int queryLen, int seqLen, int... images) {
    return of(new Request(queryLen, seqLen, images));
  }

  static LayerGroup layers(AttentionMask mask) {
    return LayerGroup.of("layers", Dense.decoder(1, 1, 64, DType.BF16, mask));
  }

  CommonAttentionMetadata metadata() {
    return builder().build();
  }

  CommonAttentionMetadata.Builder builder() {
    int[] queryStartLoc = new int[requests.size() + 1];
    int[] seqLens = new int[requests.size()];
    int[][] images = new int[requests.size()][];
    for (int r = 0; r < requests.size(); r++) {
      queryStartLoc[r + 1] = queryStartLoc[r] + requests.get(r).queryLen();
      seqLens[r] = requests.get(r).seqLen();
      images[r] = requests.get(r).images();
    }
    return CommonAttentionMetadata.builder(
            queryStartLoc,
            seqLens,
            TensorView.ofHost(MemorySegment.NULL, DType.INT32, requests.size(), 0),
            new SlotMapping(TensorView.ofHost(MemorySegment.NULL, DType.INT64, 0)))
        .live(live)
        .images(ImageRanges.of(images, live));
  }
}

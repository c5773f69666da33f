package bifocal.core.latent;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * What latent layers must agree about to share one cache group.
 *
 * @param dtype type of the cache
 * @param compression tokens per record
 * @param modelVersion version of the model whose records these are, empty for plain rows
 * @param window sliding window, absent for a full cache
 * @param stridedBlocks whether kernels find blocks by a stride of bytes
 * @param nonCausal whether blocks of query tokens may attend both ways
 */
public record LatentCacheKind(
    KvCacheDtype dtype,
    int compression,
    String modelVersion,
    Option<Integer> window,
    boolean stridedBlocks,
    boolean nonCausal) {

  /**
   * The kind of a group of layers. It runs blocks both ways as soon as one of its layers does.
   *
   * @throws BifocalException {@code KV_INCOMPATIBLE} when the layers differ in anything else,
   *     {@code INVALID_PARAMETER} when there are none
   */
  public static LatentCacheKind merged(Seq<LatentCacheKind> layers) {
    if (layers.isEmpty()) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER, "layers of a KV cache group", 0, "at least 1");
    }
    LatentCacheKind first = layers.head();
    if (layers.exists(layer -> !layer.marked(false).equals(first.marked(false)))) {
      throw BifocalException.of(
          ErrorCode.KV_INCOMPATIBLE,
          "All attention layers in the same KV cache group must use the same quantization method,"
              + " compress ratio, model version, and KV block stride indexing.",
          layers.mkString("; "),
          "layers of one kind");
    }
    return first.marked(layers.exists(LatentCacheKind::nonCausal));
  }

  private LatentCacheKind marked(boolean bothWays) {
    return new LatentCacheKind(dtype, compression, modelVersion, window, stridedBlocks, bothWays);
  }
}

package bifocal.core.latent;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * How the layers of DeepSeek V4.1 compress and share their caches.
 *
 * @param ratios of each layer: 0 for a sliding window alone, else tokens per entry
 * @param kvSources layers that fill a cache, ascending
 * @param indexSources layers that fill an indexer's cache, ascending
 */
public record CompressedLayers(
    Seq<Integer> ratios, Seq<Integer> kvSources, Seq<Integer> indexSources) {
  private static final int MOST = 2;

  public CompressedLayers {
    Option<Integer> other = ratios.find(ratio -> ratio < 0 || ratio > MOST);
    if (other.isDefined()) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "Unsupported DeepSeek V4.1 compress_ratio=" + other.get() + "; expected 0, 1, or 2.");
    }
  }

  /** The layer whose cache a layer reads: the newest source up to itself, absent without one. */
  public Option<Integer> kvSource(int layer) {
    return newest(kvSources, layer);
  }

  /** The layer whose indexer's cache a layer reads. */
  public Option<Integer> indexSource(int layer) {
    return newest(indexSources, layer);
  }

  private static Option<Integer> newest(Seq<Integer> sources, int layer) {
    return sources.filter(source -> source <= layer).max();
  }
}

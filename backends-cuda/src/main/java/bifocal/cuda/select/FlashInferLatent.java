package bifocal.cuda.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.latent.LatentScales;
import bifocal.core.latent.QueryQuantization;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * What a call of {@code FLASHINFER_MLA}'s decode is made of. The call has no causal flag: blocks
 * that attend both ways are flattened to tokens.
 */
public final class FlashInferLatent {
  private static final long WORKSPACE_BYTES = 128L << 20;
  private static final long WORKSPACE_BYTES_WITH_LSE = 256L << 20;
  private static final int FEW_HEADS = 8;
  private static final int SOME_HEADS = 32;
  private static final int BLACKWELL = 10;

  private FlashInferLatent() {}

  /** What is worth knowing of a layer's calls. */
  static Seq<String> remarks(AttentionRequest request) {
    return Sm.major(request.device()) == BLACKWELL
        ? LatentCacheTypes.queries(request, QueryQuantization.BY_LAYER)
            .appendAll(ofHeads(request.layer().numHeads()))
        : Vector.empty();
  }

  private static Option<String> ofHeads(int heads) {
    Kernel kernel = kernel(heads);
    return Option.when(
        kernel != Kernel.AUTO,
        () ->
            heads
                + " query heads fill no tiles of "
                + headTile(heads)
                + ": the "
                + kernel.label()
                + " kernel is asked for");
  }

  /** Which kernel is asked for. */
  public enum Kernel {
    /** The library decides. */
    AUTO(""),
    /** The one that takes any number of heads. */
    CUTE_DSL("cute-dsl");

    private final String label;

    Kernel(String label) {
      this.label = label;
    }

    /** Name as the library writes it; empty where it decides. */
    public String label() {
      return label;
    }
  }

  /**
   * Query heads that a tile of the library's own choice has.
   *
   * @param heads query heads of a call
   * @throws BifocalException {@code INVALID_PARAMETER} for none
   */
  public static int headTile(int heads) {
    if (heads < 1) {
      throw BifocalException.of(ErrorCode.INVALID_PARAMETER, "query heads", heads, "at least 1");
    }
    if (heads <= FEW_HEADS) {
      return 8;
    }
    return heads <= SOME_HEADS ? 16 : 64;
  }

  /** The kernel for so many query heads: the library's own choice needs full tiles. */
  public static Kernel kernel(int heads) {
    return heads % Math.min(heads, headTile(heads)) == 0 ? Kernel.AUTO : Kernel.CUTE_DSL;
  }

  /** Bytes of the workspace. */
  public static long workspaceBytes(boolean returnsLogSumExp) {
    return returnsLogSumExp ? WORKSPACE_BYTES_WITH_LSE : WORKSPACE_BYTES;
  }

  /**
   * Factors of a call.
   *
   * @param cached type of the cache, after selection
   * @param scale the layer's factor on {@code q·k}
   * @param query factor that turns quantised queries back
   * @param key factor that turns cached numbers back
   */
  public static LatentScales scales(KvCacheDtype cached, double scale, double query, double key) {
    return LatentCacheTypes.quantized(cached)
        ? LatentScales.quantized(scale, query, key)
        : LatentScales.plain(scale);
  }
}

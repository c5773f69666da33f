package bifocal.rocm.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.Locale;

/**
 * How {@code ROCM_AITER_MLA} runs so many query heads of one rank.
 *
 * @param heads query heads of the rank
 */
public record AiterHeads(int heads) {
  /** Variable of the environment that says which kernel runs fewer heads than a tile has. */
  public static final String SMALL_HEADS = "VLLM_ROCM_AITER_MLA_ASM_PADDING";

  private static final int TILE = 16;
  private static final String GFX950 = "gfx950";

  /** Which kernel runs fewer heads than a tile has. */
  public enum SmallHeads {
    /** Gluon where it is and the heads divide a tile, else the padded kernel. */
    AUTO,
    /** Gluon where it is. */
    GLUON,
    /** The padded kernel. */
    ASM;

    /**
     * The choice of a value of {@link #SMALL_HEADS}, in any letter case; an empty one is {@link
     * #AUTO}.
     *
     * @throws BifocalException {@code INVALID_OPTION} for another word
     */
    public static SmallHeads of(String value) {
      return switch (value.strip().toLowerCase(Locale.ROOT)) {
        case "", "auto" -> AUTO;
        case "gluon" -> GLUON;
        case "asm" -> ASM;
        default ->
            throw BifocalException.of(
                ErrorCode.INVALID_OPTION, SMALL_HEADS, "'" + value + "'", "auto, gluon or asm");
      };
    }
  }

  /** What is worth knowing of a layer's calls, the environment left aside. */
  static Seq<String> remarks(AttentionRequest request) {
    AiterHeads rank = new AiterHeads(request.layer().numHeads());
    return rank.runnable() ? rank.remarks(request.device()) : Vector.empty();
  }

  private Seq<String> remarks(DeviceProfile device) {
    return Vector.of(
            Option.when(padded() != heads, () -> heads + " query heads are padded to " + padded()),
            Option.when(
                gluon(SmallHeads.AUTO, device, 1),
                "decodes of single tokens run on Gluon's kernel"),
            Option.when(fp8Prefill(device), "prefills run on fp8"))
        .flatMap(remark -> remark);
  }

  /** Whether the kernels run so many heads: fewer than a tile has, or full tiles. */
  public boolean runnable() {
    return heads > 0 && (heads < TILE || heads % TILE == 0);
  }

  /** Query heads of a call, padding included. */
  public int padded() {
    return Math.max(heads, TILE);
  }

  /**
   * The layer's head that a head of a call is a copy of. Heads that divide a tile are repeated one
   * by one; others, in turn until the tile is full.
   *
   * @param head head of the call, from 0
   */
  public int source(int head) {
    return repeated() ? head / (TILE / heads) : head % heads;
  }

  /**
   * The head of a call that has a result of the layer.
   *
   * @param head head of the layer, from 0
   */
  public int result(int head) {
    return repeated() ? head * (TILE / heads) : head;
  }

  /**
   * Whether Gluon's kernel runs a decode.
   *
   * @param queryTokens query tokens of each request
   */
  public boolean gluon(SmallHeads choice, DeviceProfile device, int queryTokens) {
    boolean possible = heads < TILE && queryTokens == 1 && onGfx950(device);
    return switch (choice) {
      case AUTO -> possible && TILE % heads == 0;
      case GLUON -> possible;
      case ASM -> false;
    };
  }

  /** Whether prefills run on fp8 without being asked to. */
  public boolean fp8Prefill(DeviceProfile device) {
    return heads % TILE == 0 && onGfx950(device);
  }

  private boolean repeated() {
    return heads < TILE && TILE % heads == 0;
  }

  private static boolean onGfx950(DeviceProfile device) {
    return device instanceof DeviceProfile.Rocm rocm
        && rocm.arch().toLowerCase(Locale.ROOT).equals(GFX950);
  }
}

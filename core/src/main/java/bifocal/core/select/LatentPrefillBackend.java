package bifocal.core.select;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.device.DeviceProfile;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.tensor.DType;
import io.vavr.collection.LinkedHashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Set;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.function.Predicate;

/**
 * A backend of latent prefill, which expands latents to keys and values and attends densely.
 *
 * @param name how users name it
 * @param description what it is, empty when the name says it
 * @param dtypes types of queries
 * @param devices where it runs, in words
 * @param runsOn where it runs
 * @param dimensions sizes it serves; none means every size
 * @param namesDimensions whether its refusal lists them
 * @param installed whether what it is built on is there
 * @param missing what is said when that is not there
 */
public record LatentPrefillBackend(
    String name,
    String description,
    Set<DType> dtypes,
    String devices,
    Predicate<DeviceProfile> runsOn,
    Seq<Dimensions> dimensions,
    boolean namesDimensions,
    Predicate<DeviceProfile> installed,
    String missing) {
  private static final Set<DType> HALVES = LinkedHashSet.of(DType.FP16, DType.BF16);

  /** The package that FlashAttention over sequences of any length is built from. */
  public static final String FLASH_ATTENTION = "flash-attn";

  /** FlashAttention over sequences of any length, on whatever it is built for. */
  public static final LatentPrefillBackend FLASH_ATTN =
      new LatentPrefillBackend(
          "FLASH_ATTN",
          "FlashAttention varlen (FA2/FA3/FA4)",
          HALVES,
          "Any",
          device -> true,
          Vector.of(
              new Dimensions(128, 64, 128),
              new Dimensions(192, 64, 256),
              new Dimensions(64, 64, 128),
              new Dimensions(256, 0, 256)),
          false,
          device -> assumed(FLASH_ATTENTION, device),
          "required dependencies not available");

  /** Sizes before absorption. */
  public record Dimensions(int qkNope, int qkRope, int v) {
    static Dimensions of(AttentionLayerSpec.Mla mla) {
      return new Dimensions(mla.qkNopeHeadDim(), mla.qkRopeHeadDim(), mla.vHeadDim());
    }

    @Override
    public String toString() {
      return "(qk_nope_head_dim="
          + qkNope
          + ", qk_rope_head_dim="
          + qkRope
          + ", v_head_dim="
          + v
          + ")";
    }
  }

  /** A backend of both 16-bit types. */
  public static LatentPrefillBackend of(
      String name,
      String description,
      String devices,
      Predicate<DeviceProfile> runsOn,
      Seq<Dimensions> dimensions,
      Predicate<DeviceProfile> installed) {
    return new LatentPrefillBackend(
        name,
        description,
        HALVES,
        devices,
        runsOn,
        dimensions,
        true,
        installed,
        "required dependencies not available");
  }

  /** The same backend, which says in its own words what is missing. */
  public LatentPrefillBackend sayingWhenMissing(String text) {
    return new LatentPrefillBackend(
        name, description, dtypes, devices, runsOn, dimensions, namesDimensions, installed, text);
  }

  /** The same backend under another name. */
  public LatentPrefillBackend named(String other) {
    return new LatentPrefillBackend(
        other,
        description,
        dtypes,
        devices,
        runsOn,
        dimensions,
        namesDimensions,
        installed,
        missing);
  }

  /** A backend that refuses every layer for one reason. */
  static LatentPrefillBackend unusable(String name, String reason) {
    return of(name, "", "", device -> true, Vector.empty(), device -> false)
        .sayingWhenMissing(reason);
  }

  /** A package that a simulated device has unless it is assumed away. */
  public static boolean assumed(String name, DeviceProfile device) {
    return device.simulated()
        ? !device.packages().contains("no-" + name)
        : device.packages().contains(name);
  }

  /** Whether nothing speaks against a layer. */
  public boolean serves(AttentionRequest asked, AttentionLayerSpec.Mla latent) {
    return runsOn.test(asked.device())
        && dtypes.contains(latent.dtype())
        && installed.test(asked.device())
        && knows(Dimensions.of(latent));
  }

  private boolean knows(Dimensions seen) {
    return dimensions.isEmpty() || dimensions.contains(seen);
  }

  /** Everything against a layer, in the order in which the reference asks. */
  public Seq<String> reasons(AttentionRequest asked, AttentionLayerSpec.Mla latent) {
    DeviceProfile device = asked.device();
    Dimensions seen = Dimensions.of(latent);
    return Vector.of(
            Option.when(
                !runsOn.test(device),
                () -> "compute capability " + number(device) + " not supported"),
            Option.when(
                !dtypes.contains(latent.dtype()),
                () -> "dtype " + latent.dtype() + " not supported"),
            Option.when(!installed.test(device), missing),
            Option.when(!knows(seen), () -> unsupported(seen)))
        .flatMap(reason -> reason);
  }

  private String unsupported(Dimensions seen) {
    String text = seen.toString();
    return "Model does not have supported MLA dimensions (got "
        + text
        + (namesDimensions ? "; supported: " + dimensions.mkString(" or ") : "")
        + ")";
  }

  private static String number(DeviceProfile device) {
    return device instanceof DeviceProfile.Cuda cuda
        ? cuda.capability().toString()
        : device.label();
  }

  /** The cells of its row: backend, description, dtypes, compute capability, notes. */
  public Seq<String> row() {
    return Vector.of(
        name,
        description,
        dtypes.mkString(", "),
        devices,
        dimensions.isEmpty() ? "" : dimensions.mkString(" or ") + " only");
  }
}

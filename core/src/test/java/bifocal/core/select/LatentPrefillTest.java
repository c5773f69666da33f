package bifocal.core.select;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.InvalidReason;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionMask;
import bifocal.core.select.LatentPrefillBackend.Dimensions;
import bifocal.core.tensor.DType;
import io.vavr.collection.HashSet;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Backends of latent prefill: what hosts register, and in which order reasons are given. */
class LatentPrefillTest {
  private static final String FLASH_ATTN = LatentPrefillBackend.FLASH_ATTN.name();
  private static final LatentPrefillBackend DECLARED =
      LatentPrefillBackend.of(
          "DECLARED",
          "",
          "10.x",
          device -> true,
          Vector.of(new Dimensions(128, 64, 128)),
          device -> true);
  private static final LatentPrefillOrder ORDER =
      new LatentPrefillOrder(Vector.of(LatentPrefillBackend.FLASH_ATTN, DECLARED), Vector.empty());

  private final LatentPrefillRegistry registry = new LatentPrefillRegistry();

  /** Serves every layer. */
  public static final class Willing implements LatentPrefillProvider {
    @Override
    public LatentPrefillBackend backend() {
      return LatentPrefillBackend.of(
          "ANY", "", "Any", device -> true, Vector.empty(), device -> true);
    }
  }

  /** Serves no layer. */
  public static final class Unwilling implements LatentPrefillProvider {
    @Override
    public LatentPrefillBackend backend() {
      return LatentPrefillBackend.of(
          "ANY", "", "nowhere", device -> false, Vector.empty(), device -> true);
    }
  }

  /** Has no constructor that could be called by name. */
  public static final class Closed implements LatentPrefillProvider {
    private Closed() {}

    @Override
    public LatentPrefillBackend backend() {
      throw new AssertionError("never made");
    }
  }

  private static AttentionRequest layer(DType dtype, int nope) {
    return AttentionRequest.of(
        new AttentionLayerSpec.Mla(
            128, 512, nope, 64, 128, dtype, KvCacheDtype.AUTO, AttentionMask.CAUSAL, 0.1, false),
        new DeviceProfile.Cuda(new ComputeCapability(9, 0), HashSet.empty(), true));
  }

  private Validation<Seq<InvalidReason>, LatentPrefill> choose(String named) {
    return ORDER.choose(
        layer(DType.BF16, 128),
        AttentionConfig.builder().mlaPrefillBackend(named).build(),
        registry.snapshot());
  }

  private String chosen(String named) {
    return choose(named).get().backend().get();
  }

  @Test
  void customMeansNothingUntilItIsRegistered() {
    assertThatThrownBy(() -> choose("custom"))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("MLA prefill backend CUSTOM must be registered before use");
  }

  @Test
  void aProviderIsRegisteredAndKnownByItsClass() {
    try (LatentPrefillRegistry.Registration custom = registry.register("custom", new Willing())) {
      assertThat(custom).isNotNull();
      assertThat(registry.snapshot().isOverridden("CUSTOM")).isTrue();
      assertThat(registry.snapshot().path("CUSTOM")).contains(Willing.class.getName());
      assertThat(chosen("CUSTOM")).isEqualTo("CUSTOM");
    }
    assertThat(registry.snapshot().isOverridden("CUSTOM")).isFalse();
    assertThatThrownBy(() -> choose("CUSTOM")).isInstanceOf(BifocalException.class);
  }

  @Test
  void aClassIsRegisteredByItsName() {
    registry.register("MINE", Willing.class.getName());

    assertThat(registry.snapshot().isOverridden("MINE")).isTrue();
    assertThat(registry.snapshot().path("MINE")).contains(Willing.class.getName());
    assertThat(chosen("mine")).isEqualTo("MINE");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "no.such.Provider",
        "java.lang.String",
        "bifocal.core.select.LatentPrefillTest$Closed"
      })
  void aClassThatCannotBeLoadedRefusesForThatReason(String path) {
    registry.register("MINE", path);

    assertThat(registry.snapshot().path("MINE")).contains(path);
    assertThat(choose("MINE").getError().head().text())
        .startsWith(
            "Selected MLA prefill backend MINE is not valid for this configuration. Reason: ['class "
                + path
                + " cannot be loaded: ");
  }

  @Test
  void anOverrideCountsUntilItIsClosed() {
    assertThat(chosen("auto")).isEqualTo(FLASH_ATTN);
    assertThat(registry.snapshot().path(FLASH_ATTN)).isEmpty();

    LatentPrefillRegistry.Registration override =
        registry.register(FLASH_ATTN, Unwilling.class.getName());
    assertThat(registry.snapshot().path(FLASH_ATTN)).contains(Unwilling.class.getName());
    assertThat(chosen("auto")).as("the next in order").isEqualTo("DECLARED");
    assertThat(choose(FLASH_ATTN).isInvalid()).isTrue();

    override.close();
    override.close();
    assertThat(registry.snapshot().path(FLASH_ATTN)).isEmpty();
    assertThat(chosen("auto")).isEqualTo(FLASH_ATTN);
  }

  @Test
  void whatWasOverriddenTwiceComesBackStepByStep() {
    LatentPrefillRegistry.Registration first = registry.register("MINE", new Unwilling());
    LatentPrefillRegistry.Registration second = registry.register("MINE", new Willing());
    assertThat(chosen("MINE")).isEqualTo("MINE");

    second.close();
    assertThat(choose("MINE").isInvalid()).isTrue();

    first.close();
    assertThatThrownBy(() -> choose("MINE"))
        .hasMessageContaining(
            "Unknown MLA prefill backend: 'MINE'. Valid options are: FLASH_ATTN, DECLARED");
  }

  @Test
  void whoIsUnknownIsToldWhatIsRegistered() {
    registry.register("MINE", new Willing());

    assertThatThrownBy(() -> choose("NONEXISTENT"))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining(
            "Unknown MLA prefill backend: 'NONEXISTENT'. Valid options are: FLASH_ATTN, DECLARED,"
                + " MINE");
  }

  @Test
  void aRegistrationUnderAnotherNameLeavesTheOrderAlone() {
    registry.register("MINE", new Willing());

    assertThat(chosen("auto")).isEqualTo(FLASH_ATTN);
  }

  @Test
  void aProviderIsAskedOnceAndOnlyWhenItIsLookedAt() {
    AtomicInteger asked = new AtomicInteger();
    registry.register(
        "MINE",
        () -> {
          asked.incrementAndGet();
          return new Willing().backend();
        });
    assertThat(asked).hasValue(0);

    choose("MINE");
    choose("MINE");
    assertThat(asked).hasValue(1);
  }

  @Test
  void aCloneHasTheSettingsOfWhatItWasMadeOf() {
    LatentPrefillBackend clone = LatentPrefillBackend.FLASH_ATTN.named("CLONE");

    assertThat(clone.named(FLASH_ATTN)).isEqualTo(LatentPrefillBackend.FLASH_ATTN);
    assertThat(clone.row().tail()).isEqualTo(LatentPrefillBackend.FLASH_ATTN.row().tail());
    assertThat(LatentPrefillBackend.FLASH_ATTN.name()).isEqualTo("FLASH_ATTN");
  }

  @Test
  void aSnapshotStaysAsItWas() {
    LatentPrefillRegistry.Snapshot before = registry.snapshot();
    registry.register("MINE", new Willing());

    assertThat(before.isOverridden("MINE")).isFalse();
    assertThat(registry.snapshot().isOverridden("MINE")).isTrue();
  }

  @Test
  void reasonsComeInTheOrderOfTheReference() {
    LatentPrefillBackend picky =
        LatentPrefillBackend.of(
                "PICKY",
                "",
                "10.x",
                device -> false,
                Vector.of(new Dimensions(128, 64, 128), new Dimensions(192, 64, 256)),
                device -> false)
            .sayingWhenMissing("install it");
    AttentionRequest asked = layer(DType.FP32, 64);

    assertThat(picky.reasons(asked, LatentPrefillOrder.latent(asked.layer()).get()))
        .containsExactly(
            "compute capability 9.0 not supported",
            "dtype fp32 not supported",
            "install it",
            "Model does not have supported MLA dimensions (got (qk_nope_head_dim=64,"
                + " qk_rope_head_dim=64, v_head_dim=128); supported: (qk_nope_head_dim=128,"
                + " qk_rope_head_dim=64, v_head_dim=128) or (qk_nope_head_dim=192,"
                + " qk_rope_head_dim=64, v_head_dim=256))");
  }

  @ParameterizedTest
  @EnumSource(DType.class)
  void prefillTakesTheTwoHalves(DType dtype) {
    boolean half = dtype == DType.BF16 || dtype == DType.FP16;

    assertThat(new Willing().backend().dtypes().contains(dtype)).isEqualTo(half);
    assertThat(LatentPrefillBackend.FLASH_ATTN.dtypes().contains(dtype)).isEqualTo(half);
  }

  @Test
  void withoutACapabilityFlashAttentionIsTakenUnasked() {
    AttentionRequest asked = layer(DType.FP32, 64);
    LatentPrefill prefill =
        LatentPrefillOrder.withoutCapability(asked, AttentionConfig.DEFAULT, registry.snapshot())
            .get();

    assertThat(prefill.backend()).contains(FLASH_ATTN);
    assertThat(prefill.notes()).singleElement().asString().contains("was not asked");
  }

  @Test
  void whatIsNamedIsAskedEvenWithoutACapability() {
    assertThat(
            LatentPrefillOrder.withoutCapability(
                    layer(DType.FP32, 64),
                    AttentionConfig.builder().mlaPrefillBackend(FLASH_ATTN).build(),
                    registry.snapshot())
                .isInvalid())
        .isTrue();
  }
}

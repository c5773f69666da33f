package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.Deployment;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.select.Role;
import bifocal.core.select.SelectionRequest;
import io.vavr.collection.Vector;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Selections for all layers of a model, and for its draft. */
class LayerGroupsTest {

  @BeforeEach
  void needsCuda() {
    Asking.requireInstalled(Platform.CUDA);
  }

  @Test
  void eachGroupGetsItsBackend() {
    assertThat(
            Asking.SELECTOR
                .selectGroups(
                    Vector.of("sliding", "full")
                        .map(kind -> "--capability 9.0 --model gemma-4-31b --layer-kind " + kind)
                        .map(Asking::request))
                .map(outcome -> outcome.get().backend().value()))
        .containsExactly("TRITON_FLASH_ATTN", "TRITON_FLASH_ATTN");
  }

  @Test
  void aQuantisedCacheIsNoFilterForALayerWithoutCache() {
    assertThat(
            Asking.SELECTOR
                .selectGroups(
                    Vector.of(
                        Asking.request(
                            "--capability 9.0 --attn-type encoder_only --kv-cache-dtype fp8"),
                        Asking.request("--capability 9.0 --kv-cache-dtype fp8")))
                .map(outcome -> outcome.get().backend().value()))
        .containsExactly("FLASH_ATTN", "FLASH_ATTN");
  }

  @Test
  void aQuantisedCacheForAModelWithoutAnyIsAnError() {
    assertThatThrownBy(
            () ->
                Asking.SELECTOR.selectGroups(
                    Vector.of(
                        Asking.request(
                            "--capability 9.0 --attn-type encoder_only --kv-cache-dtype fp8"))))
        .isInstanceOf(BifocalException.class)
        .hasMessage(
            "kv_cache_dtype of a model without any KV cache: fp8, wanted auto;"
                + " leave the type of the KV cache open");
  }

  @Test
  void aDraftIsReplicatedWhereTheTargetIsSharded() {
    SelectionRequest target =
        Asking.request("--capability 9.0 --attention-backend TRITON_ATTN --dcp 16");

    assertThat(Asking.SELECTOR.select(target).getError().message()).contains("DCP not supported");
    assertThat(Asking.SELECTOR.select(target.with(Role.DRAFT)).get().backend().value())
        .isEqualTo("TRITON_ATTN");
  }

  @Test
  void aDraftMayHaveAConfigurationOfItsOwn() {
    SelectionRequest target = Asking.request("--capability 9.0 --attention-backend TRITON_ATTN");
    SelectionRequest draft =
        Asking.request("--capability 9.0 --attention-backend FLASH_ATTN").with(Role.DRAFT);

    assertThat(Asking.SELECTOR.select(draft).get().backend().value()).isEqualTo("FLASH_ATTN");
    assertThat(Asking.SELECTOR.select(target).get().backend().value()).isEqualTo("TRITON_ATTN");
  }

  @Test
  void longDraftsAreRefusedByABackendThatVerifiesFew() {
    SelectionRequest request = Asking.request("--capability 9.0 --attention-backend HPC_ATTN");
    AttentionRequest asked = request.attention();
    Deployment drafting =
        new Deployment(
            false, 1, 1, false, false, false, false, false, false, 4, asked.deployment().kernels());

    assertThat(
            Asking.SELECTOR
                .select(
                    request.with(
                        new AttentionRequest(
                            asked.layer(), asked.device(), asked.blockSize(), drafting)))
                .getError()
                .message())
        .contains("at most 3 speculative tokens, got 4");
  }
}

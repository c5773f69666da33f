package bifocal.cli.select;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.composite.guice.AttentionBinder;
import bifocal.composite.guice.BifocalInjector;
import bifocal.composite.guice.PlatformModules;
import bifocal.core.device.Platform;
import bifocal.core.error.BifocalException;
import bifocal.core.select.LatentPrefillBackend;
import bifocal.core.select.LatentPrefillRegistry;
import bifocal.core.select.SelectionRefusal;
import bifocal.core.select.SelectionReport;
import bifocal.core.select.Selector;
import com.google.inject.Module;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Rows of a host's own backends of latent prefill, seen by a selection. */
class RegisteredPrefillTest {
  private static final String ASKED = "--capability 9.0 --use-mla";
  private static final String CUSTOM = ASKED + " -ac.mla_prefill_backend CUSTOM";

  private final Selector selector = selector(binder -> {});

  @BeforeEach
  void needsCuda() {
    Asking.requireInstalled(Platform.CUDA);
  }

  private static Selector selector(Module host) {
    return BifocalInjector.create(
            Vector.<Module>of(host).appendAll(PlatformModules.detect().present()))
        .getInstance(Selector.class);
  }

  private static LatentPrefillBackend own() {
    return LatentPrefillBackend.FLASH_ATTN.named("OWN");
  }

  private Validation<SelectionRefusal, SelectionReport> select(String arguments) {
    return selector.select(Asking.request(arguments));
  }

  @Test
  void customIsTakenOnceItIsRegistered() {
    assertThatThrownBy(() -> select(CUSTOM))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("must be registered before use");

    LatentPrefillRegistry.Registration custom =
        selector.latentPrefills().register("CUSTOM", RegisteredPrefillTest::own);
    assertThat(select(CUSTOM).get().latentPrefill()).contains("CUSTOM");
    assertThat(select(ASKED).get().latentPrefill()).as("nobody named").contains("FLASH_ATTN");

    custom.close();
    assertThatThrownBy(() -> select(CUSTOM)).isInstanceOf(BifocalException.class);
  }

  @Test
  void anOverrideIsSeenByTheNextSelectionAndGoneAfterIt() {
    String wide = "--capability 10.0 --use-mla";
    assertThat(select(wide).get().latentPrefill()).contains("FLASH_ATTN");

    LatentPrefillRegistry.Registration override =
        selector.latentPrefills().register("FLASH_ATTN", "not.on.this.ClassPath");
    assertThat(select(wide).get().latentPrefill()).contains("TRTLLM_RAGGED");
    assertThat(select(wide + " -ac.mla_prefill_backend FLASH_ATTN").getError().message())
        .contains("is not valid")
        .contains("class not.on.this.ClassPath cannot be loaded");

    override.close();
    assertThat(select(wide).get().latentPrefill()).contains("FLASH_ATTN");
  }

  @Test
  void aModuleOfTheHostBindsOne() {
    Selector bound =
        selector(
            binder ->
                AttentionBinder.latentPrefills(binder)
                    .addBinding("MINE")
                    .toInstance(RegisteredPrefillTest::own));

    assertThat(
            bound
                .select(Asking.request(ASKED + " -ac.mla_prefill_backend mine"))
                .get()
                .latentPrefill())
        .contains("MINE");
  }
}

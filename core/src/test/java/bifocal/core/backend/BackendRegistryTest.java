package bifocal.core.backend;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

class BackendRegistryTest {
  private final BackendRegistry registry = new BackendRegistry();
  private final StubBackend triton = stub("TRITON_ATTN");
  private final StubBackend flash = stub("FLASH_ATTN");
  private final StubBackend custom = stub("CUSTOM");

  @BeforeEach
  void register() {
    registry.register(triton, "the CUDA module");
    registry.register(flash, "the CUDA module");
  }

  @Test
  void registeringANameLeavesEveryOtherLookUpAsItWas() {
    registry.register(custom, "a host");
    assertThat(registry.snapshot().require("TRITON_ATTN")).isSameAs(triton);
    assertThat(registry.snapshot().require("FLASH_ATTN")).isSameAs(flash);
    assertThat(registry.snapshot().require("CUSTOM")).isSameAs(custom);
    assertThat(names()).containsExactly("TRITON_ATTN", "FLASH_ATTN", "CUSTOM");
  }

  @Test
  void aNameIsFoundInAnyLetterCase() {
    assertThat(registry.snapshot().require(" triton_attn ")).isSameAs(triton);
    assertThat(BackendName.of("Flash_Attn")).isEqualTo(flash.name());
  }

  @Test
  void aSecondBackendOfANameIsRefusedNamingBothProviders() {
    assertRefused(
            ErrorCode.DUPLICATE_BACKEND, () -> registry.register(stub("FLASH_ATTN"), "a host"))
        .contains("FLASH_ATTN")
        .contains("the CUDA module")
        .contains("a host");
    assertThat(registry.snapshot().require("FLASH_ATTN")).isSameAs(flash);
  }

  @Test
  void takingARegistrationBackRestoresTheStateBefore() {
    BackendRegistry.Registration registration = registry.register(custom, "a host");
    registration.close();
    registration.close();
    assertThat(names()).containsExactly("TRITON_ATTN", "FLASH_ATTN");
    assertRefused(ErrorCode.UNKNOWN_BACKEND, () -> registry.snapshot().require("CUSTOM"));
    registry.register(custom, "another host");
    assertThat(registry.snapshot().provider(custom.name())).containsExactly("another host");
  }

  @Test
  void aReplacementSaidAloudHoldsUntilItIsTakenBack() {
    StubBackend better = stub("TRITON_ATTN");
    BackendRegistry.Registration registration = registry.replace(better, "a host");
    assertThat(registry.snapshot().require("TRITON_ATTN")).isSameAs(better);
    assertThat(registry.snapshot().provider(better.name())).containsExactly("a host");
    assertThat(names()).containsExactly("TRITON_ATTN", "FLASH_ATTN");
    registration.close();
    assertThat(registry.snapshot().require("TRITON_ATTN")).isSameAs(triton);
  }

  @Test
  void replacementsMayBeTakenBackInAnyOrder() {
    StubBackend second = stub("TRITON_ATTN");
    StubBackend third = stub("TRITON_ATTN");
    BackendRegistry.Registration lower = registry.replace(second, "second");
    BackendRegistry.Registration upper = registry.replace(third, "third");
    lower.close();
    assertThat(registry.snapshot().require("TRITON_ATTN")).isSameAs(third);
    upper.close();
    assertThat(registry.snapshot().require("TRITON_ATTN")).isSameAs(triton);
  }

  @Test
  void nothingIsReplacedThatIsNotThere() {
    assertRefused(ErrorCode.UNKNOWN_BACKEND, () -> registry.replace(stub("TRITON_ATN"), "a host"))
        .contains("TRITON_ATTN");
  }

  @Test
  void anUnknownNameIsRefusedWithTheKnownOnesAndTheNearest() {
    assertRefused(ErrorCode.UNKNOWN_BACKEND, () -> registry.snapshot().require("TRITON_ATN"))
        .contains("TRITON_ATN")
        .contains("TRITON_ATTN, FLASH_ATTN")
        .endsWith("the nearest known one is 'TRITON_ATTN'");
    assertRefused(
            ErrorCode.UNKNOWN_BACKEND, () -> new BackendRegistry().snapshot().require("CUSTOM"))
        .contains("no backend is registered");
  }

  @Test
  void textsThatNoNameCanBeAreRefused() {
    for (String text : new String[] {null, "", "  ", "TRITON-ATTN", "FLASH ATTN", "É"}) {
      assertRefused(ErrorCode.INVALID_OPTION, () -> registry.snapshot().require(text));
    }
  }

  @Test
  void backendsThatHaveAFeatureAreListedAsAdvice() {
    registry.register(
        new StubBackend(
            "WITH_LSE",
            new Capabilities(StubBackend.PLAIN, FeatureSet.NONE.withFeatures(Feature.LSE))),
        "a host");
    assertThat(registry.snapshot().having(Feature.LSE).map(BackendName::value))
        .containsExactly("WITH_LSE");
  }

  @Test
  void aSnapshotNeverChanges() {
    BackendRegistry.Snapshot before = registry.snapshot();
    registry.register(custom, "a host");
    assertThat(before.find(custom.name())).isEmpty();
    assertThat(registry.snapshot().find(custom.name())).isNotEmpty();
  }

  @Test
  void registrationsDuringASelectionAreSeenWholeOrNotAtAll() throws InterruptedException {
    CountDownLatch started = new CountDownLatch(1);
    AtomicBoolean over = new AtomicBoolean();
    AtomicReference<Throwable> failure = new AtomicReference<>();
    Thread registering =
        Thread.ofPlatform()
            .start(
                () -> {
                  started.countDown();
                  try {
                    for (int i = 0; i < 2_000; i++) {
                      BackendRegistry.Registration replaced =
                          registry.replace(stub("TRITON_ATTN"), "a host");
                      BackendRegistry.Registration added = registry.register(custom, "a host");
                      replaced.close();
                      added.close();
                    }
                  } catch (RuntimeException e) {
                    failure.set(e);
                  } finally {
                    over.set(true);
                  }
                });
    started.await();
    int seen = 0;
    while (!over.get() || seen == 0) {
      BackendRegistry.Snapshot snapshot = registry.snapshot();
      Seq<BackendName> names = snapshot.names();
      assertThat(snapshot.backends().map(AttentionBackend::name)).isEqualTo(names);
      assertThat(names).startsWith(triton.name(), flash.name());
      assertThat(snapshot.require("FLASH_ATTN")).isSameAs(flash);
      seen++;
    }
    registering.join();
    assertThat(failure.get()).isNull();
    assertThat(registry.snapshot().require("TRITON_ATTN")).isSameAs(triton);
  }

  private Seq<String> names() {
    return registry.snapshot().names().map(BackendName::value);
  }

  private static StubBackend stub(String name) {
    return new StubBackend(name, StubBackend.PLAIN);
  }
}

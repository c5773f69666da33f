package bifocal.core.backend;

import static bifocal.core.error.Refusals.assertRefused;
import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
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

  /** C25: of two threads that register one name, one is refused. */
  @Test
  void ofTwoRegistrationsAtOnceOneIsRefused() throws InterruptedException {
    for (int run = 0; run < 200; run++) {
      BackendRegistry shared = new BackendRegistry();
      StubBackend[] both = {stub("CUSTOM"), stub("CUSTOM")};
      AtomicInteger refused = new AtomicInteger();
      CyclicBarrier start = new CyclicBarrier(2);
      Thread[] threads = new Thread[2];
      for (int i = 0; i < 2; i++) {
        StubBackend mine = both[i];
        String provider = "host " + i;
        threads[i] =
            Thread.ofPlatform()
                .start(
                    () -> {
                      try {
                        start.await();
                        shared.register(mine, provider);
                      } catch (BifocalException e) {
                        refused.addAndGet(e.code() == ErrorCode.DUPLICATE_BACKEND ? 1 : 100);
                      } catch (InterruptedException | BrokenBarrierException e) {
                        refused.addAndGet(1_000);
                      }
                    });
      }
      for (Thread thread : threads) {
        thread.join();
      }
      assertThat(refused).hasValue(1);
      assertThat(shared.snapshot().names()).hasSize(1);
      assertThat(shared.snapshot().backends().head()).isIn((Object[]) both);
    }
  }

  /** C25: what a backend calls itself later on changes nothing of what is registered. */
  @Test
  void aRegistrationKeepsTheNameItWasMadeWith() {
    AtomicReference<String> name = new AtomicReference<>("FIRST");
    AttentionBackend<?> renaming =
        new StubBackend("FIRST", StubBackend.PLAIN) {
          @Override
          public BackendName name() {
            return BackendName.of(name.get());
          }
        };
    BackendRegistry.Registration registration = registry.register(renaming, "a host");
    name.set("FLASH_ATTN");

    registration.close();

    assertThat(names()).containsExactly("TRITON_ATTN", "FLASH_ATTN");
    assertThat(registry.snapshot().require("FLASH_ATTN")).isSameAs(flash);
  }

  /** C25: one object under a name twice is a second registration like any other. */
  @Test
  void theSameBackendTwiceIsRefusedAndItsFirstRegistrationStays() {
    assertRefused(ErrorCode.DUPLICATE_BACKEND, () -> registry.register(flash, "a host"));
    BackendRegistry.Registration again = registry.replace(flash, "a host");
    assertThat(registry.snapshot().provider(flash.name())).containsExactly("a host");
    again.close();
    again.close();
    assertThat(registry.snapshot().require("FLASH_ATTN")).isSameAs(flash);
    assertThat(registry.snapshot().provider(flash.name())).containsExactly("the CUDA module");
  }

  /** C25: a name in other letters is the same name, for a replacement, too. */
  @Test
  void aNameInAnotherCaseIsNoSecondName() {
    assertRefused(ErrorCode.INVALID_OPTION, () -> registry.register(stub("flash_attn"), "a host"));
    String same = BackendName.of(" Flash_Attn ").value();
    assertRefused(ErrorCode.DUPLICATE_BACKEND, () -> registry.register(stub(same), "a host"));
    StubBackend better = stub(same);
    registry.replace(better, "a host");
    assertThat(registry.snapshot().require("FLASH_ATTN")).isSameAs(better);
    assertThat(names()).containsExactly("TRITON_ATTN", "FLASH_ATTN");
  }
}

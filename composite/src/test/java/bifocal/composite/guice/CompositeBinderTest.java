package bifocal.composite.guice;

import static bifocal.composite.guice.AttentionBinder.backends;
import static bifocal.composite.guice.AttentionBinder.capabilityMajor;
import static bifocal.composite.guice.AttentionBinder.composites;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.composite.CompositeBackend;
import bifocal.composite.PlainBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.ComputeCapability;
import bifocal.core.device.DeviceProfile;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.route.Child;
import bifocal.core.route.RoutingPolicy;
import bifocal.routing.FixedRouting;
import bifocal.routing.MMPrefixAttentionRouting;
import bifocal.routing.PrefillDecodeRouting;
import com.google.inject.AbstractModule;
import com.google.inject.Binder;
import com.google.inject.CreationException;
import com.google.inject.Key;
import com.google.inject.Module;
import com.google.inject.TypeLiteral;
import io.vavr.collection.HashSet;
import java.util.Map;
import org.junit.jupiter.api.Test;

class CompositeBinderTest {
  private static final BackendName GENERAL = new BackendName("GENERAL");
  private static final BackendName FAST = new BackendName("FAST");
  private static final BackendName PAIR = new BackendName("PAIR");

  /** A platform of two backends. */
  private static final class TwoBackends extends AbstractModule {
    @Override
    protected void configure() {
      backends(binder()).addBinding(GENERAL).toInstance(new PlainBackend("GENERAL"));
      backends(binder()).addBinding(FAST).toInstance(new PlainBackend("FAST"));
    }
  }

  private static AttentionBackends bound(Module... modules) {
    return BifocalInjector.create(modules).getInstance(AttentionBackends.class);
  }

  private static void refused(Module module, String... words) {
    assertThatThrownBy(() -> bound(new TwoBackends(), module))
        .isInstanceOfSatisfying(
            BifocalException.class,
            e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_COMPOSITION))
        .hasMessageContainingAll(words);
  }

  @Test
  void withoutPlatformsThereIsNothing() {
    assertThat(bound().byName()).isEmpty();
  }

  @Test
  void backendsAndCompositesStandSideBySide() {
    AttentionBackends backends =
        bound(
            new TwoBackends(),
            binder ->
                composites(binder)
                    .bind(PAIR)
                    .of(GENERAL, FAST)
                    .routedBy(MMPrefixAttentionRouting.class));

    assertThat(backends.byName().keySet()).containsExactly(FAST, GENERAL, PAIR);
    CompositeBackend<?, ?> pair = (CompositeBackend<?, ?>) backends.named(PAIR);
    assertThat(pair.childA()).isSameAs(backends.named(GENERAL));
    assertThat(pair.childB()).isSameAs(backends.named(FAST));
    assertThat(pair.policy()).isInstanceOf(MMPrefixAttentionRouting.class);
  }

  @Test
  void theLimitsOfTheSentenceAreTheCompositesLimits() {
    FeatureSet features =
        bound(
                new TwoBackends(),
                binder ->
                    composites(binder)
                        .bind(PAIR)
                        .of(GENERAL, FAST)
                        .routedBy(MMPrefixAttentionRouting.class)
                        .onlyOn(capabilityMajor(10))
                        .headSizes(64, 128)
                        .kernelBlockSizes(64)
                        .kvCacheDtypes(KvCacheDtype.AUTO))
            .named(PAIR)
            .capabilities()
            .all();

    assertThat(features.headSizes()).isEqualTo(HeadSizes.exactly(64, 128));
    assertThat(features.blockSizes()).isEqualTo(BlockSizes.exactly(64));
    assertThat(features.kvCacheDtypes()).containsExactly(KvCacheDtype.AUTO);
    assertThat(features.devices()).isEqualTo(capabilityMajor(10));
    assertThat(accepts(features.devices(), 10, 3)).isTrue();
    assertThat(accepts(features.devices(), 9, 0)).isFalse();
  }

  private static boolean accepts(DeviceSupport devices, int major, int minor) {
    return devices.accepts(
        new DeviceProfile.Cuda(new ComputeCapability(major, minor), HashSet.empty(), true));
  }

  @Test
  void aHostAddsItsOwnBackendPairAndPolicyBesideThePlatforms() {
    BackendName mine = new BackendName("MINE");
    AttentionBackends backends =
        bound(
            new TwoBackends(),
            binder -> {
              backends(binder).addBinding(mine).toInstance(new PlainBackend("MINE"));
              composites(binder).bind(PAIR).of(GENERAL, mine).routedBy(new FixedRouting(Child.B));
            });

    assertThat(((CompositeBackend<?, ?>) backends.named(PAIR)).childB())
        .isSameAs(backends.named(mine));
  }

  @Test
  void aCompositeMayBeBoundBeforeTheCompositeItIsMadeOf() {
    BackendName outer = new BackendName("OUTER");
    AttentionBackends backends =
        bound(
            new TwoBackends(),
            binder -> {
              composites(binder).bind(outer).of(PAIR, FAST).routedBy(PrefillDecodeRouting.class);
              composites(binder)
                  .bind(PAIR)
                  .of(GENERAL, FAST)
                  .routedBy(MMPrefixAttentionRouting.class);
            });

    assertThat(((CompositeBackend<?, ?>) backends.named(outer)).childA())
        .isSameAs(backends.named(PAIR));
  }

  @Test
  void everyMissingChildIsNamed() {
    refused(
        binder -> {
          composites(binder)
              .bind(PAIR)
              .of(GENERAL, new BackendName("ABSENT"))
              .routedBy(MMPrefixAttentionRouting.class);
          composites(binder)
              .bind(new BackendName("OTHER"))
              .of(new BackendName("GONE"), new BackendName("LOST"))
              .routedBy(MMPrefixAttentionRouting.class);
        },
        "PAIR needs ABSENT",
        "OTHER needs GONE and LOST",
        "bound are FAST, GENERAL");
  }

  @Test
  void aCompositeOfItselfIsRefused() {
    refused(
        binder ->
            composites(binder)
                .bind(PAIR)
                .of(GENERAL, PAIR)
                .routedBy(MMPrefixAttentionRouting.class),
        "PAIR needs PAIR");
  }

  @Test
  void aPairThatCannotBeComposedIsRefusedWithEveryReason() {
    BackendName other = new BackendName("OTHER");
    refused(
        binder -> {
          backends(binder)
              .addBinding(other)
              .toInstance(
                  new PlainBackend(
                      "OTHER",
                      PlainBackend.FEATURES
                          .withHeadSizes(HeadSizes.exactly(3))
                          .withBlockSizes(BlockSizes.exactly(5))));
          composites(binder).bind(PAIR).of(GENERAL, other).routedBy(MMPrefixAttentionRouting.class);
        },
        "no common head size",
        "no common kernel block size");
  }

  @Test
  void aNameThatIsTakenIsRefused() {
    refused(
        binder ->
            composites(binder)
                .bind(FAST)
                .of(GENERAL, FAST)
                .routedBy(MMPrefixAttentionRouting.class),
        "two backends are bound as FAST");
  }

  @Test
  void aBackendBoundUnderAnotherNameIsRefused() {
    refused(
        binder -> backends(binder).addBinding(PAIR).toInstance(new PlainBackend("SOMETHING")),
        "backend SOMETHING is bound as PAIR");
  }

  @Test
  void aSentenceWithoutAPolicyIsRefused() {
    refused(binder -> composites(binder).bind(PAIR).of(GENERAL, FAST), "PAIR", "no policy");
  }

  @Test
  void aPolicyThatNobodyBindsIsReportedByGuice() {
    Module module =
        binder -> composites(binder).bind(PAIR).of(GENERAL, FAST).routedBy(UnboundPolicy.class);

    assertThatThrownBy(() -> bound(new TwoBackends(), module))
        .isInstanceOf(CreationException.class)
        .hasMessageContaining("UnboundPolicy");
  }

  /** A policy that no module binds. */
  private abstract static class UnboundPolicy implements RoutingPolicy {}

  @Test
  void policiesAreKnownByTheNamesUsersWrite() {
    Map<String, RoutingPolicy> policies =
        BifocalInjector.create().getInstance(Key.get(new TypeLiteral<>() {}));

    assertThat(policies).containsOnlyKeys("mm-prefix", "prefill-decode");
    assertThat(policies.get("mm-prefix")).isInstanceOf(MMPrefixAttentionRouting.class);
  }

  @Test
  void whatIsNotBoundIsNotMade() {
    assertThatThrownBy(() -> BifocalInjector.create((Binder binder) -> binder.bind(Needy.class)))
        .isInstanceOf(CreationException.class)
        .hasMessageContaining("Explicit bindings are required");
  }

  /** Needs something that no module binds. */
  static final class Needy {
    @jakarta.inject.Inject
    Needy(StringBuilder unbound) {
      unbound.append("made");
    }
  }
}

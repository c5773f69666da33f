package bifocal.composite.guice;

import bifocal.composite.CompositeLimits;
import bifocal.composite.PairRule;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.route.RoutingPolicy;
import com.google.inject.Binder;
import com.google.inject.Provider;
import io.vavr.control.Option;

/** Binds composites; see {@link AttentionBinder#composites}. */
public final class CompositeBinder {
  private final Binder binder;

  CompositeBinder(Binder binder) {
    this.binder = binder.skipSources(CompositeBinder.class, AttentionBinder.class);
  }

  /** Begins a composite; its children come next. */
  public Named bind(BackendName name) {
    Sentence sentence = new Sentence(binder, name);
    AttentionBinder.compositeBindings(binder).addBinding().toProvider(sentence::binding);
    return new Named(sentence);
  }

  /** A composite that still needs its children. */
  public static final class Named {
    private final Sentence sentence;

    private Named(Sentence sentence) {
      this.sentence = sentence;
    }

    /** Names the general child, which writes the cache, and the fast child. */
    public Paired of(BackendName childA, BackendName childB) {
      sentence.children = Option.some(new Children(childA, childB));
      return new Paired(sentence);
    }
  }

  /** A composite that still needs its policy. */
  public static final class Paired {
    private final Sentence sentence;

    private Paired(Sentence sentence) {
      this.sentence = sentence;
    }

    /** Routes by a policy that some module binds. */
    public Limited routedBy(Class<? extends RoutingPolicy> policy) {
      sentence.policy = Option.some(sentence.binder.getProvider(policy));
      return new Limited(sentence);
    }

    /** Routes by this policy. */
    public Limited routedBy(RoutingPolicy policy) {
      sentence.policy = Option.some(() -> policy);
      return new Limited(sentence);
    }
  }

  /** A complete composite, whose limits may follow. */
  public static final class Limited {
    private final Sentence sentence;

    private Limited(Sentence sentence) {
      this.sentence = sentence;
    }

    /** Claims no other devices. */
    public Limited onlyOn(DeviceSupport devices) {
      return with(sentence.limits.onlyOn(devices));
    }

    /** Claims no other head sizes. */
    public Limited headSizes(Integer... sizes) {
      return with(sentence.limits.headSizes(sizes));
    }

    /** Claims no other kernel block sizes. */
    public Limited kernelBlockSizes(Integer... tokens) {
      return with(sentence.limits.kernelBlockSizes(tokens));
    }

    /** Claims no other types of cache. */
    public Limited kvCacheDtypes(KvCacheDtype... types) {
      return with(sentence.limits.kvCacheDtypes(types));
    }

    /** Claims nothing beyond what the reference knows of composites. */
    public Limited asTheReference() {
      return with(sentence.limits.asTheReference());
    }

    /** Asks a rule of the fast child besides. */
    public Limited provided(PairRule rule) {
      return with(sentence.limits.provided(rule));
    }

    private Limited with(CompositeLimits limits) {
      sentence.limits = limits;
      return this;
    }
  }

  private record Children(BackendName a, BackendName b) {}

  /** What was said of one composite so far; read when the injector is made. */
  private static final class Sentence {
    private final Binder binder;
    private final BackendName name;
    private Option<Children> children = Option.none();
    private Option<Provider<? extends RoutingPolicy>> policy = Option.none();
    private CompositeLimits limits = CompositeLimits.NONE;

    private Sentence(Binder binder, BackendName name) {
      this.binder = binder;
      this.name = name;
    }

    private CompositeBinding binding() {
      if (children.isEmpty() || policy.isEmpty()) {
        throw BifocalException.of(
            ErrorCode.INVALID_COMPOSITION,
            "binding of composite " + name,
            children.isEmpty() ? "no children" : "no policy",
            "composites(binder()).bind(NAME).of(A, B).routedBy(POLICY)");
      }
      return new CompositeBinding(
          name, children.get().a(), children.get().b(), policy.get().get(), limits);
    }
  }
}

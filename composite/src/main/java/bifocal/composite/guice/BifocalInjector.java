package bifocal.composite.guice;

import bifocal.core.error.BifocalException;
import com.google.inject.Binder;
import com.google.inject.CreationException;
import com.google.inject.Guice;
import com.google.inject.Injector;
import com.google.inject.Module;
import com.google.inject.Stage;
import com.google.inject.spi.Message;
import io.vavr.collection.Vector;
import java.util.Arrays;

/**
 * The one place that makes an injector: everything is bound explicitly and made at once, so that a
 * mistake shows before the first step.
 */
public final class BifocalInjector {
  private BifocalInjector() {}

  /** An injector with {@link AttentionModule} and these modules. */
  public static Injector create(Module... modules) {
    return create(Arrays.asList(modules));
  }

  /**
   * An injector with {@link AttentionModule} and these modules.
   *
   * @throws BifocalException what Bifocal found wrong with what was bound
   * @throws CreationException what Guice found wrong with the modules
   */
  public static Injector create(Iterable<? extends Module> modules) {
    try {
      return Guice.createInjector(
          Stage.PRODUCTION,
          Vector.<Module>of(BifocalInjector::beStrict, new AttentionModule())
              .appendAll(modules)
              .asJava());
    } catch (CreationException e) {
      throw ours(e);
    }
  }

  private static void beStrict(Binder binder) {
    binder.requireExplicitBindings();
    binder.requireExactBindingAnnotations();
    binder.disableCircularProxies();
  }

  private static RuntimeException ours(CreationException failure) {
    return Vector.ofAll(failure.getErrorMessages())
        .map(Message::getCause)
        .find(BifocalException.class::isInstance)
        .map(RuntimeException.class::cast)
        .getOrElse(failure);
  }
}

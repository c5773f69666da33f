package bifocal.core.backend;

import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.LayerGroup;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.Arrays;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Graph support as a backend states it for its own kernels. A class that is derived from another
 * backend and brings other kernels does not inherit the level that was stated for the kernels it
 * replaced: it states its own, or is never captured. Other kernels are another builder or
 * implementation, and another version of anything that those it inherits may call.
 */
public final class StatedGraphSupport {
  /** What describes a backend, and runs nothing. */
  private static final Set<String> DESCRIBING =
      Set.of(
          "name",
          "capabilities",
          "execution",
          "checkCombination",
          "combinationReads",
          "missingOnThisHost",
          "rows",
          "toString",
          "equals",
          "hashCode");

  private static final ClassValue<Boolean> STATED = stating("graphSupport", LayerGroup.class);
  private static final ClassValue<Boolean> VARIANT_STATED =
      stating("variant", AttentionRequest.class);

  private StatedGraphSupport() {}

  /** The level a backend states for a group, {@code NEVER} when it only inherits one. */
  public static GraphSupport of(AttentionBackend<?> backend, LayerGroup group) {
    return STATED.get(backend.getClass()) ? backend.graphSupport(group) : GraphSupport.NEVER;
  }

  /**
   * The level of a variant, {@code NEVER} when the backend only inherits what resolves variants.
   */
  public static GraphSupport ofVariant(AttentionBackend<?> backend, GraphSupport level) {
    return VARIANT_STATED.get(backend.getClass()) ? level : GraphSupport.NEVER;
  }

  private static ClassValue<Boolean> stating(String method, Class<?>... parameters) {
    return new ClassValue<>() {
      @Override
      protected Boolean computeValue(Class<?> backend) {
        try {
          Class<?> stated = backend.getMethod(method, parameters).getDeclaringClass();
          return stated.isInterface()
              ? stated != AttentionBackend.class
              : !replaced(backend, stated);
        } catch (NoSuchMethodException e) {
          throw new AssertionError("every backend has " + method, e);
        }
      }
    };
  }

  /** Whether a class below the one that stated the level runs something else than that one. */
  private static boolean replaced(Class<?> backend, Class<?> stated) {
    Set<String> present =
        hierarchy(stated)
            .flatMap(type -> Arrays.stream(type.getDeclaredMethods()))
            .filter(method -> !Modifier.isPrivate(method.getModifiers()))
            .filter(method -> !Modifier.isStatic(method.getModifiers()))
            .filter(method -> !Modifier.isAbstract(method.getModifiers()))
            .map(StatedGraphSupport::signature)
            .collect(Collectors.toSet());
    return hierarchy(backend)
        .takeWhile(type -> type != stated)
        .flatMap(type -> Arrays.stream(type.getDeclaredMethods()))
        .filter(method -> !method.isBridge())
        .filter(method -> !DESCRIBING.contains(method.getName()))
        .anyMatch(method -> present.contains(signature(method)));
  }

  private static Stream<Class<?>> hierarchy(Class<?> type) {
    return Stream.<Class<?>>iterate(
        type, above -> above != null && above != Object.class, Class::getSuperclass);
  }

  private static String signature(Method method) {
    return method.getName() + Arrays.toString(method.getParameterTypes());
  }
}

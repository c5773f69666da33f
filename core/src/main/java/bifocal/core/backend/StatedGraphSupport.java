package bifocal.core.backend;

import bifocal.core.cache.KvCacheSpec;
import bifocal.core.graph.GraphSupport;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;

/**
 * Graph support as a backend states it for its own kernels. A class that is derived from another
 * backend and brings other kernels does not inherit the level that was stated for the kernels it
 * replaced: it states its own, or is never captured.
 */
public final class StatedGraphSupport {
  private StatedGraphSupport() {}

  /** The level a backend states for a group, {@code NEVER} when it only inherits one. */
  public static GraphSupport of(AttentionBackend<?> backend, LayerGroup group) {
    Class<?> level = declares(backend, "graphSupport", LayerGroup.class);
    boolean inherited =
        replaces(level, declares(backend, "createBuilder", LayerGroup.class, KvCacheSpec.class))
            || replaces(
                level,
                declares(
                    backend,
                    "createImpl",
                    AttentionLayerSpec.class,
                    LayerParameters.class,
                    KvCacheSpec.class));
    return inherited ? GraphSupport.NEVER : backend.graphSupport(group);
  }

  /** Whether kernels come from a class that is derived from the one that stated the level. */
  private static boolean replaces(Class<?> level, Class<?> kernels) {
    return level != kernels && level.isAssignableFrom(kernels);
  }

  private static Class<?> declares(
      AttentionBackend<?> backend, String method, Class<?>... parameters) {
    try {
      return backend.getClass().getMethod(method, parameters).getDeclaringClass();
    } catch (NoSuchMethodException e) {
      throw new AssertionError("every backend has " + method, e);
    }
  }
}

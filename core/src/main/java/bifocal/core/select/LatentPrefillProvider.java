package bifocal.core.select;

/**
 * Makes a backend of latent prefill. A class that is registered by its name implements this type
 * and has a public constructor without parameters.
 */
@FunctionalInterface
public interface LatentPrefillProvider {
  /** The backend; its name does not count, as it is registered under one. */
  LatentPrefillBackend backend();
}

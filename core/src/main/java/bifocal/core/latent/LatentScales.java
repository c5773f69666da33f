package bifocal.core.latent;

/**
 * Factors of a latent decode whose kernel multiplies quantised numbers as they are.
 *
 * @param score factor on {@code q·k} before the softmax
 * @param output factor on the weighted sum of cached latents
 */
public record LatentScales(double score, double output) {

  /** Factors of a cache of the model's own type. */
  public static LatentScales plain(double scale) {
    return new LatentScales(scale, 1);
  }

  /**
   * Factors of a quantised cache.
   *
   * @param scale the layer's factor on {@code q·k}
   * @param query factor that turns quantised queries back
   * @param key factor that turns cached numbers back; keys and values are the same numbers
   */
  public static LatentScales quantized(double scale, double query, double key) {
    return new LatentScales(scale * query * key, key);
  }
}

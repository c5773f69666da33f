package bifocal.core.backend;

/**
 * What the engine, rather than the layer, asks of a backend.
 *
 * @param modelSeesImages whether some layer of the model has an image mask; backends are chosen
 *     model-wide by it
 * @param decodeContextParallel ranks that share one sequence in decode, 1 = off
 * @param prefillContextParallel ranks that share one sequence in prefill, 1 = off
 * @param kvConnector whether the cache is transferred to another process
 * @param batchInvariant whether results may not depend on the batch
 * @param adaptiveVerification whether query lengths on the device differ from the host's copy
 * @param rswa whether windows always keep the prompt's beginning
 * @param perHeadQuantScales whether a quantised cache has scales per head
 * @param alibiSqrt whether ALiBi takes the square root of the distance
 */
public record Deployment(
    boolean modelSeesImages,
    int decodeContextParallel,
    int prefillContextParallel,
    boolean kvConnector,
    boolean batchInvariant,
    boolean adaptiveVerification,
    boolean rswa,
    boolean perHeadQuantScales,
    boolean alibiSqrt) {
  /** One rank, nothing special. */
  public static final Deployment PLAIN =
      new Deployment(false, 1, 1, false, false, false, false, false, false);

  /** The same deployment of a model of which some layer sees images. */
  public Deployment withModelSeesImages(boolean value) {
    return new Deployment(
        value,
        decodeContextParallel,
        prefillContextParallel,
        kvConnector,
        batchInvariant,
        adaptiveVerification,
        rswa,
        perHeadQuantScales,
        alibiSqrt);
  }
}

package bifocal.core.backend;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;

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
 * @param speculativeTokens tokens drafted per request and step, 0 = none
 * @param kernels which kernels of a family the user wants
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
    boolean alibiSqrt,
    int speculativeTokens,
    KernelSettings kernels) {
  public Deployment {
    if (decodeContextParallel < 1 || prefillContextParallel < 1) {
      throw BifocalException.of(
          ErrorCode.INVALID_PARAMETER,
          "context parallel ranks",
          decodeContextParallel + " in decode, " + prefillContextParallel + " in prefill",
          "at least 1");
    }
  }

  /** One rank, nothing special. */
  public static final Deployment PLAIN =
      new Deployment(false, 1, 1, false, false, false, false, false, false);

  /** A deployment that drafts no tokens and leaves kernels to their families. */
  public Deployment(
      boolean modelSeesImages,
      int decodeContextParallel,
      int prefillContextParallel,
      boolean kvConnector,
      boolean batchInvariant,
      boolean adaptiveVerification,
      boolean rswa,
      boolean perHeadQuantScales,
      boolean alibiSqrt) {
    this(
        modelSeesImages,
        decodeContextParallel,
        prefillContextParallel,
        kvConnector,
        batchInvariant,
        adaptiveVerification,
        rswa,
        perHeadQuantScales,
        alibiSqrt,
        0,
        KernelSettings.DEFAULT);
  }

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
        alibiSqrt,
        speculativeTokens,
        kernels);
  }

  /** The same deployment over so many ranks that share one sequence in decode. */
  public Deployment withDecodeContextParallel(int ranks) {
    return new Deployment(
        modelSeesImages,
        ranks,
        prefillContextParallel,
        kvConnector,
        batchInvariant,
        adaptiveVerification,
        rswa,
        perHeadQuantScales,
        alibiSqrt,
        speculativeTokens,
        kernels);
  }

  /** The same deployment with other kernel settings. */
  public Deployment withKernels(KernelSettings value) {
    return new Deployment(
        modelSeesImages,
        decodeContextParallel,
        prefillContextParallel,
        kvConnector,
        batchInvariant,
        adaptiveVerification,
        rswa,
        perHeadQuantScales,
        alibiSqrt,
        speculativeTokens,
        value);
  }
}

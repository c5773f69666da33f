package bifocal.cuda.flashinfer;

import io.vavr.collection.Map;
import io.vavr.collection.Set;

/**
 * A module of a pack.
 *
 * @param key what it was compiled for
 * @param uri FlashInfer's name of it
 * @param file its file in the pack
 * @param sha256 of the file
 * @param version of the package that its sources come from
 * @param signatures its functions, and what the manifest says of each
 * @param masks mask modes that it was linked with, of a prefill
 */
record ModuleEntry(
    ModuleKey key,
    String uri,
    String file,
    String sha256,
    String version,
    Map<String, String> signatures,
    Set<Integer> masks) {

  /** No mask beyond the end of the keys. */
  static final int MASK_NONE = 0;

  /** Queries see no later keys. */
  static final int MASK_CAUSAL = 1;
}

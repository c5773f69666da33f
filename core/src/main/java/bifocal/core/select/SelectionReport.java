package bifocal.core.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.BackendName;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.device.DeviceProfile;
import bifocal.core.graph.GraphSupport;
import io.vavr.Lazy;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/**
 * What was chosen for one layer group, what decided, and everything that was considered.
 *
 * @param chosen the backend itself
 * @param extension whether the reference alone would have refused it
 * @param versions versions of the chosen backend, or of its children, as {@code NAME VERSION}
 * @param latentPrefill backend of latent prefill, absent for other layers
 * @param kvCacheDtype type of the cache: as it was asked for, or what the backend makes of it
 * @param contract the agreement among all who touch the cache, absent where there is none
 * @param kernelBlockSizes kernel block sizes that the chosen backend runs
 * @param blockSize tokens per block of the block table, absent without a cache
 * @param children of a composite, the general one first; else empty
 * @param remarks the {@linkplain #notes() notes}, put together when somebody reads them
 */
public record SelectionReport(
    AttentionBackend<?> chosen,
    Source source,
    DeviceProfile device,
    boolean extension,
    Seq<KernelVersion> versions,
    Option<String> latentPrefill,
    KvCacheDtype kvCacheDtype,
    Option<KvCacheSpec> contract,
    BlockSizes kernelBlockSizes,
    Option<Integer> blockSize,
    GraphSupport graphSupport,
    Seq<BackendName> children,
    Seq<Candidate> candidates,
    Lazy<Seq<String>> remarks) {

  /** A version of one backend's kernels that serves the layer. */
  public record KernelVersion(BackendName backend, String version) {}

  /** What policies changed and what is worth a warning. */
  public Seq<String> notes() {
    return remarks.get();
  }

  /** The name of the chosen backend. */
  public BackendName backend() {
    return chosen.name();
  }

  /** The FlashAttention version that serves the layer, absent when none does. */
  public Option<Integer> flashAttentionVersion() {
    return versions
        .map(KernelVersion::version)
        .find(version -> version.matches("FA\\d"))
        .map(version -> version.charAt(2) - '0');
  }

  /** The FlashInfer kernel that serves the layer, absent when none does. */
  public Option<String> flashInferKernel() {
    return versions
        .find(v -> v.backend().equals(KnownBackend.FLASHINFER.backend()))
        .map(KernelVersion::version);
  }
}

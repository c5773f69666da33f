package bifocal.cpu.select;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/**
 * What an engine must keep to on a latent backend of the host.
 *
 * @param blockSize tokens of a block of the cache
 * @param chunkedPrefill whether a prompt may be computed in several steps
 * @param prefixCaching whether the cache of one request may serve another
 */
public record CpuLatentEngine(int blockSize, boolean chunkedPrefill, boolean prefixCaching) {
  /** What {@code CPU_MLA} asks for. */
  public static final CpuLatentEngine CPU_MLA = new CpuLatentEngine(16, false, false);

  /** What an engine must switch off. */
  Seq<String> remarks() {
    return Vector.of(
            Option.when(!chunkedPrefill, "chunked prefill is off"),
            Option.when(!prefixCaching, "prefix caching is off"))
        .flatMap(remark -> remark);
  }
}

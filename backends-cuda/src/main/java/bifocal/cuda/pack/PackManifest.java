package bifocal.cuda.pack;

import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import io.vavr.collection.Seq;

/**
 * What a pack says of itself.
 *
 * @param target what its kernels were compiled for, for instance {@code sm_90}
 * @param triton version of the compiler
 * @param kernels by what they were compiled for
 */
public record PackManifest(String target, String triton, Map<Specialisation, KernelEntry> kernels) {
  /** Version of the format that this build reads. */
  public static final int FORMAT = 1;

  /** Name of the file in a pack's directory. */
  public static final String FILE = "manifest.json";

  static PackManifest of(String target, String triton, Seq<KernelEntry> kernels) {
    Map<Specialisation, KernelEntry> found = LinkedHashMap.empty();
    for (KernelEntry kernel : kernels) {
      found = found.put(kernel.specialisation(), kernel);
    }
    return new PackManifest(target, triton, found);
  }
}

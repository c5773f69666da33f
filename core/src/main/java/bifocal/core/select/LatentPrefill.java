package bifocal.core.select;

import io.vavr.Lazy;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;
import java.util.function.Supplier;

/**
 * How the prefills of a latent layer run.
 *
 * @param backend what expands latents and attends densely, absent where nothing does
 * @param remarks the {@linkplain #notes() notes}, put together when somebody reads them
 */
public record LatentPrefill(Option<String> backend, Lazy<Seq<String>> remarks) {
  /** Why a sparse backend without a dense path has no backend of prefill. */
  public static final String NO_DENSE_PATH =
      "Sparse MLA impl has no dense-MHA prefill path; using the top-k MQA path only.";

  /** Why a sparse layer has no backend of prefill when the user wants none. */
  public static final String FORCED_MQA =
      "sparse_mla_force_mqa: every prefill token attends over its chosen keys.";

  /** Not a latent layer, or one whose decode backend runs prefills too. */
  public static final LatentPrefill NONE = new LatentPrefill(Option.none(), Lazy.of(Vector::empty));

  /** Prefills run on a backend of their own. */
  public static LatentPrefill by(String backend) {
    return new LatentPrefill(Option.some(backend), NONE.remarks);
  }

  /** Prefills run as decodes do, and that is worth a remark. */
  public static LatentPrefill none(String because) {
    return none(() -> because);
  }

  /** The same, with a remark that is put into words when somebody reads it. */
  public static LatentPrefill none(Supplier<String> because) {
    return new LatentPrefill(Option.none(), Lazy.of(() -> Vector.of(because.get())));
  }

  /** The same with a remark more. */
  public LatentPrefill remarking(String remark) {
    return new LatentPrefill(backend, Lazy.of(() -> remarks.get().append(remark)));
  }

  /** Why there is none, and what else is worth knowing. */
  public Seq<String> notes() {
    return remarks.get();
  }
}

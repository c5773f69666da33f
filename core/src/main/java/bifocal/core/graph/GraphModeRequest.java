package bifocal.core.graph;

import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;

/**
 * A wanted graph mode, and what stands against it. Resolving it steps down to what the weakest
 * attention backend supports, aloud.
 *
 * @param wanted the mode the engine asks for
 * @param support the weakest graph support of all layer groups
 * @param weakest name of the backend that has it
 * @param attentionSplit whether attention lies between the pieces of a piecewise graph
 * @param piecewiseCompiled whether the model was compiled in pieces at all
 * @param decodeLength queries of one request in a batch of decodes; more than 1 with drafted tokens
 */
public record GraphModeRequest(
    GraphMode wanted,
    GraphSupport support,
    String weakest,
    boolean attentionSplit,
    boolean piecewiseCompiled,
    int decodeLength) {

  private static final String ADVICE =
      "; please try cudagraph_mode=PIECEWISE, and make sure compilation mode is VLLM_COMPILE";

  /**
   * A mode that every backend supports.
   *
   * @param warnings each step down, in order
   */
  public record Resolved(GraphMode mode, Seq<String> warnings) {
    private Resolved to(GraphMode other, String warning) {
      return new Resolved(other, warnings.append(warning));
    }
  }

  /** The mode, or why there is none to step down to. */
  public Validation<String, Resolved> resolve() {
    return mixedBatches(new Resolved(wanted, Vector.empty()))
        .map(this::decodes)
        .map(this::drafts)
        .flatMap(this::nothingLeft);
  }

  private Validation<String, Resolved> mixedBatches(Resolved so) {
    if (so.mode().ofMixed() != GraphMode.FULL || support == GraphSupport.ALWAYS) {
      return Validation.valid(so);
    }
    String problem = unsupported(so.mode(), "with " + weakest + " backend");
    if (support == GraphSupport.NEVER) {
      return Validation.invalid(problem + ADVICE);
    }
    GraphMode lower = attentionSplit ? GraphMode.FULL_AND_PIECEWISE : GraphMode.FULL_DECODE_ONLY;
    return Validation.valid(so.to(lower, problem + setting(lower)));
  }

  private Resolved decodes(Resolved so) {
    if (so.mode().ofDecodes() != GraphMode.FULL || support != GraphSupport.NEVER) {
      return so;
    }
    GraphMode lower = piecewiseCompiled ? GraphMode.PIECEWISE : GraphMode.NONE;
    String why =
        piecewiseCompiled
            ? " because attention is compiled piecewise"
            : " because attention is not compiled piecewise";
    return so.to(
        lower, unsupported(so.mode(), "with " + weakest + " backend") + setting(lower) + why);
  }

  private Resolved drafts(Resolved so) {
    boolean served =
        so.mode().ofDecodes() != GraphMode.FULL
            || decodeLength <= 1
            || support.compareTo(GraphSupport.UNIFORM_BATCH) >= 0;
    if (served) {
      return so;
    }
    GraphMode lower = attentionSplit ? GraphMode.PIECEWISE : GraphMode.NONE;
    return so.to(
        lower,
        unsupported(so.mode(), "with spec-decode for attention backend " + weakest)
            + setting(lower));
  }

  private Validation<String, Resolved> nothingLeft(Resolved so) {
    return so.mode().hasFull() && support == GraphSupport.NEVER
        ? Validation.invalid(unsupported(so.mode(), "with " + weakest + " backend") + ADVICE)
        : Validation.valid(so);
  }

  private String unsupported(GraphMode mode, String with) {
    return "CUDAGraphMode."
        + mode
        + " is not supported "
        + with
        + " (support: AttentionCGSupport."
        + support
        + ")";
  }

  private static String setting(GraphMode lower) {
    return "; setting cudagraph_mode=" + lower;
  }
}

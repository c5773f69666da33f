package bifocal.cuda.flashinfer;

import bifocal.core.tensor.DType;

/** What a module was compiled for. Queries, keys, values and outputs have one type. */
public sealed interface ModuleKey {

  /** Which of two families of kernels a prefill belongs to. */
  enum Engine {
    FA2("fa2"),
    /** For compute capability 9.0 only. */
    FA3("fa3");

    private final String label;

    Engine(String label) {
      this.label = label;
    }

    /** As manifests write it. */
    public String label() {
      return label;
    }
  }

  /** Its name in reports, events and graph keys. */
  String label();

  /**
   * Decode on CUDA cores, one query a request.
   *
   * @param window whether it knows sliding windows
   * @param softcap whether it caps logits
   */
  record Decode(DType dtype, int headSize, boolean window, boolean softcap) implements ModuleKey {
    @Override
    public String label() {
      return "flashinfer-fa2-decode-" + suffix(dtype, headSize, window, softcap);
    }
  }

  /**
   * Attention of any number of queries on tensor cores.
   *
   * @param window whether it knows sliding windows
   * @param softcap whether it caps logits
   */
  record Prefill(Engine engine, DType dtype, int headSize, boolean window, boolean softcap)
      implements ModuleKey {
    @Override
    public String label() {
      return "flashinfer-"
          + engine.label()
          + "-prefill-"
          + suffix(dtype, headSize, window, softcap);
    }
  }

  /**
   * Decode of requests of one query each.
   *
   * @param pageSize tokens of a block
   * @param group query heads of a KV head
   * @param window whether it knows sliding windows
   */
  record Xqa(DType dtype, int headSize, int pageSize, int group, boolean window)
      implements ModuleKey {
    @Override
    public String label() {
      return "flashinfer-xqa-"
          + suffix(dtype, headSize, window, false)
          + "-p"
          + pageSize
          + "-g"
          + group;
    }
  }

  private static String suffix(DType dtype, int headSize, boolean window, boolean softcap) {
    return dtype.label() + "-d" + headSize + (window ? "-window" : "") + (softcap ? "-cap" : "");
  }
}

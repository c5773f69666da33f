package bifocal.cuda.flashinfer;

import bifocal.tvm.Signature;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;

/** What this package was written for: the functions it calls, and what each of them takes. */
final class ModuleSignatures {
  /** The package whose modules have these functions. */
  static final String PACKAGE = "flashinfer-python";

  /** Its version. How a plan lies in memory belongs to it, so no other is taken. */
  static final String VERSION = "0.7.4";

  static final String PLAN = "plan";
  static final String RUN = "run";
  static final String PAGED_RUN = "paged_run";
  static final String XQA = "xqa_wrapper";

  private static final Map<String, Signature> DECODE =
      LinkedHashMap.of(
          PLAN, signature("TTTTiiiibidiiTT", "ffi.Array<int>"),
          RUN, signature("TTATTTTTTTtiibodddd", "None"));

  private static final Map<String, Signature> PREFILL_FA2 =
      LinkedHashMap.of(
          PLAN, signature("TTTTTTiiiiibiibiibiib", "ffi.Array<int>"),
          PAGED_RUN, signature("TTATTTTTTTTtiiibooooooooddddi", "None"));

  private static final Map<String, Signature> PREFILL_FA3 =
      LinkedHashMap.of(
          PLAN, signature("TTTTTTiiiiibiibi", "ffi.Array<int>"),
          PAGED_RUN, signature("TTATTTTTTTTtiiiboooodddi", "None"));

  private static final Map<String, Signature> XQA_DECODE =
      LinkedHashMap.of(XQA, signature("biiidtTdTtTTttTiTidtittTTb", "None"));

  private ModuleSignatures() {}

  /** Functions of a module of a kind. */
  static Map<String, Signature> of(ModuleKey key) {
    return switch (key) {
      case ModuleKey.Decode decode -> DECODE;
      case ModuleKey.Prefill(ModuleKey.Engine engine, var _, var _, var _, var _) ->
          switch (engine) {
            case FA2 -> PREFILL_FA2;
            case FA3 -> PREFILL_FA3;
          };
      case ModuleKey.Xqa xqa -> XQA_DECODE;
    };
  }

  /**
   * A signature in short.
   *
   * @param parameters one letter each: {@code T}ensor, {@code t}ensor or nothing, tensor {@code
   *     o}bject or nothing, {@code i}nt, {@code d}ouble, {@code b}ool, {@code A}rray of ints
   */
  private static Signature signature(String parameters, String result) {
    StringBuilder text = new StringBuilder("(");
    for (int i = 0; i < parameters.length(); i++) {
      text.append(i == 0 ? "" : ", ").append(type(parameters.charAt(i)));
    }
    return Signature.parse(text + ") -> " + result);
  }

  private static String type(char letter) {
    return switch (letter) {
      case 'T' -> "DLTensor*";
      case 't' -> "Optional<DLTensor*>";
      case 'o' -> "Optional<ffi.Tensor>";
      case 'i' -> "int";
      case 'd' -> "float";
      case 'b' -> "bool";
      case 'A' -> "ffi.Array<int>";
      default -> throw new IllegalArgumentException("no parameter is written " + letter);
    };
  }
}

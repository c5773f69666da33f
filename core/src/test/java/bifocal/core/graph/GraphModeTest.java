package bifocal.core.graph;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import io.vavr.collection.Vector;
import io.vavr.control.Validation;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class GraphModeTest {

  @ParameterizedTest(name = "modes by support: {0} with {1}, split {2}, compiled {3}, decodes {4}")
  @CsvSource({
    "FULL, ALWAYS, true, true, 1, FULL",
    "FULL, UNIFORM_BATCH, true, true, 1, FULL_AND_PIECEWISE",
    "FULL, UNIFORM_SINGLE_TOKEN_DECODE, true, true, 1, FULL_AND_PIECEWISE",
    "FULL, NEVER, true, true, 1, error",
    "FULL, ALWAYS, false, false, 1, FULL",
    "FULL, UNIFORM_BATCH, false, false, 1, FULL_DECODE_ONLY",
    "FULL, UNIFORM_SINGLE_TOKEN_DECODE, false, false, 1, FULL_DECODE_ONLY",
    "FULL, NEVER, false, false, 1, error",
    "FULL_AND_PIECEWISE, ALWAYS, true, true, 1, FULL_AND_PIECEWISE",
    "FULL_AND_PIECEWISE, UNIFORM_BATCH, true, true, 1, FULL_AND_PIECEWISE",
    "FULL_AND_PIECEWISE, UNIFORM_SINGLE_TOKEN_DECODE, true, true, 1, FULL_AND_PIECEWISE",
    "FULL_AND_PIECEWISE, UNIFORM_SINGLE_TOKEN_DECODE, true, true, 3, PIECEWISE",
    "FULL_AND_PIECEWISE, NEVER, true, true, 1, PIECEWISE",
    "FULL_AND_PIECEWISE, NEVER, true, false, 1, NONE",
    "FULL_DECODE_ONLY, ALWAYS, true, true, 3, FULL_DECODE_ONLY",
    "FULL_DECODE_ONLY, UNIFORM_BATCH, true, true, 3, FULL_DECODE_ONLY",
    "FULL_DECODE_ONLY, UNIFORM_SINGLE_TOKEN_DECODE, true, true, 1, FULL_DECODE_ONLY",
    "FULL_DECODE_ONLY, UNIFORM_SINGLE_TOKEN_DECODE, true, true, 3, PIECEWISE",
    "FULL_DECODE_ONLY, UNIFORM_SINGLE_TOKEN_DECODE, false, true, 3, NONE",
    "FULL_DECODE_ONLY, NEVER, true, true, 1, PIECEWISE",
    "FULL_DECODE_ONLY, NEVER, true, false, 1, NONE",
    "PIECEWISE, NEVER, true, true, 3, PIECEWISE",
    "NONE, NEVER, true, true, 3, NONE",
    "FULL, UNIFORM_SINGLE_TOKEN_DECODE, true, true, 3, PIECEWISE",
  })
  void stepsDownToWhatTheWeakestBackendSupports(
      GraphMode wanted,
      GraphSupport support,
      boolean split,
      boolean compiled,
      int decodes,
      String expected) {
    Validation<String, GraphModeRequest.Resolved> resolved =
        new GraphModeRequest(wanted, support, "X", split, compiled, decodes).resolve();

    String mode = resolved.isValid() ? resolved.get().mode().name() : "error";
    assertThat(mode).isEqualTo(expected);
  }

  @Test
  void everyStepDownIsSaid() {
    assertThat(
            new GraphModeRequest(
                    GraphMode.FULL,
                    GraphSupport.UNIFORM_SINGLE_TOKEN_DECODE,
                    "TritonFlashInferBackend",
                    true,
                    true,
                    3)
                .resolve()
                .get()
                .warnings())
        .containsExactly(
            "CUDAGraphMode.FULL is not supported with TritonFlashInferBackend backend (support:"
                + " AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE); setting"
                + " cudagraph_mode=FULL_AND_PIECEWISE",
            "CUDAGraphMode.FULL_AND_PIECEWISE is not supported with spec-decode for attention"
                + " backend TritonFlashInferBackend (support:"
                + " AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE); setting"
                + " cudagraph_mode=PIECEWISE");
  }

  @Test
  void aRefusalNamesTheWayOut() {
    assertThat(
            new GraphModeRequest(GraphMode.FULL, GraphSupport.NEVER, "X", true, true, 1)
                .resolve()
                .getError())
        .isEqualTo(
            "CUDAGraphMode.FULL is not supported with X backend (support:"
                + " AttentionCGSupport.NEVER); please try cudagraph_mode=PIECEWISE, and make sure"
                + " compilation mode is VLLM_COMPILE");
  }

  @ParameterizedTest(name = "dispatch: {0}, {1} tokens, uniform {2}, full allowed {3}")
  @CsvSource({
    "FULL, 8, false, true, 'FULL 8 8 false'",
    "FULL, 8, true, true, 'FULL 8 8 false'",
    "FULL, 15, false, true, 'NONE 15 any false'",
    "FULL, 8, false, false, 'NONE 8 any false'",
    "FULL_DECODE_ONLY, 8, false, true, 'NONE 8 any false'",
    "FULL_DECODE_ONLY, 8, true, true, 'FULL 8 8 true'",
    "FULL_DECODE_ONLY, 15, true, true, 'NONE 15 any false'",
    "FULL_DECODE_ONLY, 8, true, false, 'NONE 8 any false'",
    "PIECEWISE, 8, false, true, 'PIECEWISE 8 any false'",
    "PIECEWISE, 8, true, true, 'PIECEWISE 8 any false'",
    "PIECEWISE, 15, false, true, 'NONE 15 any false'",
    "PIECEWISE, 8, false, false, 'PIECEWISE 8 any false'",
    "FULL_AND_PIECEWISE, 5, true, true, 'FULL 8 8 true'",
    "FULL_AND_PIECEWISE, 5, false, true, 'PIECEWISE 8 any false'",
    "FULL_AND_PIECEWISE, 5, true, false, 'PIECEWISE 8 any false'",
    "NONE, 1, true, true, 'NONE 1 any false'",
  })
  void aBatchFindsItsGraphBySize(
      GraphMode mode, int tokens, boolean uniform, boolean full, String expected) {
    GraphDispatch.Found found =
        GraphDispatch.of(mode, Vector.of(8, 1), 1, 16, true).find(tokens, uniform, full);

    assertThat(
            found.mode()
                + " "
                + found.tokens()
                + " "
                + found.requests().map(String::valueOf).getOrElse("any")
                + " "
                + found.uniform())
        .isEqualTo(expected);
  }

  @Test
  void piecesNeedAModelCompiledInPieces() {
    assertThatThrownBy(
            () -> GraphDispatch.of(GraphMode.FULL_AND_PIECEWISE, Vector.of(1, 8), 1, 16, false))
        .isInstanceOf(BifocalException.class)
        .hasMessageContaining("compiled in pieces");
  }

  @Test
  void decodesAreCapturedUpToAFullBatchOfThem() {
    GraphDispatch dispatch =
        GraphDispatch.of(GraphMode.FULL_AND_PIECEWISE, Vector.of(2, 4, 8, 64), 2, 4, true);

    assertThat(dispatch.find(6, true, true).requests()).contains(4);
    assertThat(dispatch.find(10, true, true).mode()).isEqualTo(GraphMode.PIECEWISE);
  }
}

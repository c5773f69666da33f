package bifocal.tvm;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Vector;
import java.util.Random;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Signatures are read from metadata and from text, and written as they are read. */
final class SignatureTest {
  private static final Vector<String> NAMES =
      Vector.of(
          "int", "bool", "DLTensor*", "ffi.Tensor", "void*", "Optional", "Variant", "ffi.Map");

  @RepeatedTest(50)
  void whatIsWrittenIsReadAgain() {
    long seed = new Random().nextLong();
    Random random = new Random(seed);
    Signature signature =
        new Signature(Vector.fill(random.nextInt(5), () -> type(random, 3)), type(random, 2));

    assertThat(Signature.parse(signature.toString())).as("seed %d", seed).isEqualTo(signature);
  }

  private static TypeSchema type(Random random, int depth) {
    int parts = depth == 0 ? 0 : random.nextInt(3);
    return new TypeSchema(
        NAMES.get(random.nextInt(NAMES.size())), Vector.fill(parts, () -> type(random, depth - 1)));
  }

  @Test
  void currentMetadataNamesResultAndParameters() {
    assertThat(
            Signature.ofMetadata(
                """
                {"type_schema":"{\\"type\\":\\"ffi.Function\\",\\"named_args\\":{\\"return\\":[{\\"type\\":\\"None\\"}],\\"params\\":[{\\"type\\":\\"DLTensor*\\"},{\\"type\\":\\"Optional\\",\\"args\\":[{\\"type\\":\\"ffi.Tensor\\"}]}]}}"}
                """))
        .hasToString("(DLTensor*, Optional<ffi.Tensor>) -> None");
  }

  @Test
  void olderMetadataListsTheResultFirst() {
    assertThat(
            Signature.ofMetadata(
                """
                {"type_schema":"{\\"type\\":\\"ffi.Function\\",\\"args\\":[{\\"type\\":\\"int\\"},{\\"type\\":\\"float\\"}]}"}
                """))
        .hasToString("(float) -> int");
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "no json", "{}", "{\"type_schema\":\"{\\\"type\\\":\\\"int\\\"}\"}"})
  void otherMetadataIsRefused(String metadata) {
    assertThatThrownBy(() -> Signature.ofMetadata(metadata))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refused -> assertThat(refused.code()).isEqualTo(ErrorCode.MALFORMED_INPUT));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "int",
        "(int",
        "(int) ->",
        "(int,) -> int",
        "(Optional<int) -> int",
        "() -> int x>"
      })
  void otherTextIsRefused(String text) {
    assertThatThrownBy(() -> Signature.parse(text))
        .isInstanceOfSatisfying(
            BifocalException.class,
            refused -> assertThat(refused.code()).isEqualTo(ErrorCode.MALFORMED_INPUT));
  }
}

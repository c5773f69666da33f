package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;

/**
 * What a function takes and returns, as in {@code (DLTensor*, Optional<ffi.Tensor>) -> None}. Two
 * signatures are equal if they are written equal.
 */
public record Signature(Seq<TypeSchema> parameters, TypeSchema result) {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final String NOTHING = "None";

  /**
   * Reads a signature as {@link #toString} writes it.
   *
   * @throws BifocalException {@code MALFORMED_INPUT}
   */
  public static Signature parse(String text) {
    return new SignatureText(text).signature();
  }

  /**
   * Reads the metadata of a function: JSON whose {@code type_schema} is JSON once more.
   *
   * @throws BifocalException {@code MALFORMED_INPUT}
   */
  public static Signature ofMetadata(String json) {
    try {
      JsonNode schema = JSON.readTree(JSON.readTree(json).path("type_schema").asText());
      if (!schema.path("type").asText().equals("ffi.Function")) {
        throw malformed(json);
      }
      return schema.has("named_args") ? named(schema.path("named_args")) : listed(schema);
    } catch (JsonProcessingException e) {
      throw malformed(json).causedBy(e);
    }
  }

  /** Result and parameters apart, as current versions write it. */
  private static Signature named(JsonNode arguments) {
    return new Signature(
        types(arguments.path("params")),
        types(arguments.path("return")).headOption().getOrElse(TypeSchema.of(NOTHING)));
  }

  /** The result first, then the parameters, as older versions write it. */
  private static Signature listed(JsonNode schema) {
    Seq<TypeSchema> types = types(schema.path("args"));
    return new Signature(types.drop(1), types.headOption().getOrElse(TypeSchema.of(NOTHING)));
  }

  private static Seq<TypeSchema> types(JsonNode list) {
    return Vector.ofAll(list).map(Signature::type);
  }

  private static TypeSchema type(JsonNode type) {
    return new TypeSchema(type.path("type").asText(), types(type.path("args")));
  }

  private static BifocalException malformed(String json) {
    return BifocalException.of(
        ErrorCode.MALFORMED_INPUT, "metadata of a function", json, "the schema of a function");
  }

  @Override
  public String toString() {
    return parameters.mkString("(", ", ", ")") + " -> " + result;
  }
}

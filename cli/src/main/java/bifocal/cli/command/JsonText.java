package bifocal.cli.command;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonSerializer;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.module.SimpleModule;
import io.vavr.Tuple2;
import io.vavr.Value;
import io.vavr.collection.Map;
import io.vavr.control.Option;
import java.io.IOException;

/**
 * JSON of results. A record becomes an object with its components in their order and in snake case;
 * an absent {@link Option} becomes null; sequences become arrays, maps objects.
 */
public final class JsonText {
  private static final JsonMapper MAPPER =
      JsonMapper.builder()
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .addModule(new SimpleModule().addSerializer(valueType(), new VavrSerializer()))
          .build();

  private JsonText() {}

  /** The JSON of a value, on one line. */
  public static String of(Object value) {
    try {
      return MAPPER.writeValueAsString(value);
    } catch (JsonProcessingException e) {
      throw new IllegalStateException("no JSON for " + value.getClass().getName(), e);
    }
  }

  @SuppressWarnings("unchecked")
  private static Class<Value<?>> valueType() {
    return (Class<Value<?>>) (Class<?>) Value.class;
  }

  private static final class VavrSerializer extends JsonSerializer<Value<?>> {
    @Override
    public void serialize(Value<?> value, JsonGenerator json, SerializerProvider provider)
        throws IOException {
      switch (value) {
        case Option<?> option when option.isEmpty() -> json.writeNull();
        case Option<?> option -> provider.defaultSerializeValue(option.get(), json);
        case Map<?, ?> map -> writeObject(map, json, provider);
        default -> writeArray(value, json, provider);
      }
    }

    private static void writeObject(Map<?, ?> map, JsonGenerator json, SerializerProvider provider)
        throws IOException {
      json.writeStartObject();
      for (Tuple2<?, ?> entry : map) {
        json.writeFieldName(String.valueOf(entry._1()));
        provider.defaultSerializeValue(entry._2(), json);
      }
      json.writeEndObject();
    }

    private static void writeArray(Value<?> values, JsonGenerator json, SerializerProvider provider)
        throws IOException {
      json.writeStartArray();
      for (Object value : values) {
        provider.defaultSerializeValue(value, json);
      }
      json.writeEndArray();
    }
  }
}

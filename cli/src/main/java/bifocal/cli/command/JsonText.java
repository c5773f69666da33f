package bifocal.cli.command;

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonSerializer;
import com.fasterxml.jackson.databind.PropertyNamingStrategies;
import com.fasterxml.jackson.databind.SerializerProvider;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.module.SimpleModule;
import io.vavr.control.Option;
import java.io.IOException;

/**
 * JSON of results. A record becomes an object with its components in their order and in snake case;
 * an absent {@link Option} becomes null; sequences become arrays.
 */
public final class JsonText {
  private static final JsonMapper MAPPER =
      JsonMapper.builder()
          .propertyNamingStrategy(PropertyNamingStrategies.SNAKE_CASE)
          .addModule(new SimpleModule().addSerializer(optionType(), new OptionAsNullable()))
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
  private static Class<Option<?>> optionType() {
    return (Class<Option<?>>) (Class<?>) Option.class;
  }

  private static final class OptionAsNullable extends JsonSerializer<Option<?>> {
    @Override
    public void serialize(Option<?> option, JsonGenerator json, SerializerProvider provider)
        throws IOException {
      if (option.isDefined()) {
        provider.defaultSerializeValue(option.get(), json);
      } else {
        json.writeNull();
      }
    }
  }
}

package bifocal.cli.select;

import bifocal.core.select.AttentionConfig;
import bifocal.core.select.AttentionConfigReader;
import bifocal.core.select.ConfigKey;
import bifocal.core.select.ConfigKeys;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BiFunction;
import java.util.function.UnaryOperator;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.IGetter;
import picocli.CommandLine.Model.ISetter;
import picocli.CommandLine.Model.OptionSpec;

/**
 * The options of the attention configuration: one for a backend's name, one for JSON, and one for
 * each key. A configuration is read in the order in which its parts are given.
 */
final class ConfigurationOptions {
  private static final IGetter NOTHING_YET =
      new IGetter() {
        @Override
        public <T> @Nullable T get() {
          return null;
        }
      };

  private final List<UnaryOperator<AttentionConfigReader>> said = new ArrayList<>();

  /** Adds the options to a command. */
  void addTo(CommandSpec command) {
    command.addOption(
        option("NAME", "The backend of all layers; auto decides.", "--attention-backend")
            .setter(reading(AttentionConfigReader::attentionBackend))
            .build());
    command.addOption(
        option("JSON", "The attention configuration as a JSON object.", "--attention-config", "-ac")
            .setter(reading(AttentionConfigReader::json))
            .build());
    ConfigKeys.ALL.forEach(key -> command.addOption(keyed(key)));
  }

  /** What was given. */
  AttentionConfig config() {
    AttentionConfigReader reader = AttentionConfigReader.start();
    for (UnaryOperator<AttentionConfigReader> saying : said) {
      reader = saying.apply(reader);
    }
    return reader.config();
  }

  private OptionSpec keyed(ConfigKey key) {
    return option(
            "VALUE", key.description(), "--attention-config." + key.name(), "-ac." + key.name())
        .setter(reading((read, value) -> read.key(key.name(), value)))
        .build();
  }

  private static OptionSpec.Builder option(String label, String description, String... names) {
    return OptionSpec.builder(names)
        .paramLabel(label)
        .description(description)
        .type(List.class)
        .auxiliaryTypes(String.class)
        .arity("1")
        .getter(NOTHING_YET);
  }

  private ISetter reading(BiFunction<AttentionConfigReader, String, AttentionConfigReader> say) {
    return new Reading(say);
  }

  /**
   * Picocli hands over an option's values so far, in one list that grows or in a new one for each
   * time that the option is given; each value is read once.
   */
  private final class Reading implements ISetter {
    private final BiFunction<AttentionConfigReader, String, AttentionConfigReader> say;
    private List<?> last = List.of();
    private int read;

    private Reading(BiFunction<AttentionConfigReader, String, AttentionConfigReader> say) {
      this.say = say;
    }

    @Override
    @SuppressWarnings("ReferenceEquality") // another list is another occasion, whatever is in it
    public <T> T set(T value) {
      if (value instanceof List<?> values) {
        read = values == last ? read : 0;
        last = values;
        for (; read < values.size(); read++) {
          String given = String.valueOf(values.get(read));
          said.add(reader -> say.apply(reader, given));
        }
      }
      return value;
    }
  }
}

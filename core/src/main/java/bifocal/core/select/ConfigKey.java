package bifocal.core.select;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.function.BiConsumer;

/**
 * One key of the attention configuration.
 *
 * @param name as users write it, for instance {@code flash_attn_version}
 * @param description one sentence for help and schema
 * @param schema JSON Schema of its value
 * @param say hands a value to a builder, or refuses it
 */
public record ConfigKey(
    String name,
    String description,
    ObjectNode schema,
    BiConsumer<AttentionConfig.Builder, JsonNode> say) {}

package bifocal.benchmarks.cpu;

import bifocal.benchmarks.cpu.ffi.OnnxRuntime.Element;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/** An ONNX model of one grouped-query attention, written as the protocol buffer that it is. */
final class AttentionModel {
  static final String[] INPUTS = {
    "query", "key", "value", "past_key", "past_value", "seqlens_k", "total_sequence_length"
  };
  static final String[] OUTPUTS = {"output", "present_key", "present_value"};
  private static final int[] INPUT_RANKS = {3, 3, 3, 4, 4, 1, 0};
  private static final int[] OUTPUT_RANKS = {3, 4, 4};
  private static final String DOMAIN = "com.microsoft";
  private static final int INTEGER_ATTRIBUTE = 2;

  private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

  private AttentionModel() {}

  static byte[] bytes() {
    return new AttentionModel()
        .number(1, 8)
        .message(8, new AttentionModel().text(1, "").number(2, 17))
        .message(8, new AttentionModel().text(1, DOMAIN).number(2, 1))
        .message(7, graph())
        .bytes
        .toByteArray();
  }

  private static AttentionModel graph() {
    AttentionModel node = new AttentionModel();
    for (String input : INPUTS) {
      node.text(1, input);
    }
    for (String output : OUTPUTS) {
      node.text(2, output);
    }
    node.text(4, "GroupQueryAttention")
        .message(5, attribute("num_heads", Work.HEADS))
        .message(5, attribute("kv_num_heads", Work.KV_HEADS))
        .text(7, DOMAIN);
    AttentionModel graph = new AttentionModel().message(1, node).text(2, "attention");
    for (int i = 0; i < INPUTS.length; i++) {
      Element element = INPUT_RANKS[i] < 3 ? Element.INT32 : Element.FLOAT;
      graph.message(11, value(INPUTS[i], element, INPUT_RANKS[i]));
    }
    for (int i = 0; i < OUTPUTS.length; i++) {
      graph.message(12, value(OUTPUTS[i], Element.FLOAT, OUTPUT_RANKS[i]));
    }
    return graph;
  }

  private static AttentionModel attribute(String name, int value) {
    return new AttentionModel().text(1, name).number(3, value).number(20, INTEGER_ATTRIBUTE);
  }

  private static AttentionModel value(String name, Element element, int rank) {
    AttentionModel shape = new AttentionModel();
    for (int i = 0; i < rank; i++) {
      shape.message(1, new AttentionModel().text(2, name + i));
    }
    AttentionModel tensor = new AttentionModel().number(1, element.number()).message(2, shape);
    return new AttentionModel().text(1, name).message(2, new AttentionModel().message(1, tensor));
  }

  private AttentionModel number(int field, long value) {
    variable((long) field << 3);
    variable(value);
    return this;
  }

  private AttentionModel text(int field, String value) {
    return block(field, value.getBytes(StandardCharsets.UTF_8));
  }

  private AttentionModel message(int field, AttentionModel message) {
    return block(field, message.bytes.toByteArray());
  }

  private AttentionModel block(int field, byte[] value) {
    variable(((long) field << 3) | 2);
    variable(value.length);
    bytes.writeBytes(value);
    return this;
  }

  private void variable(long value) {
    long rest = value;
    for (; rest > 0x7F; rest >>>= 7) {
      bytes.write((int) ((rest & 0x7F) | 0x80));
    }
    bytes.write((int) rest);
  }
}

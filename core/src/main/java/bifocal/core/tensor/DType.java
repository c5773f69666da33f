package bifocal.core.tensor;

/** Element types of tensors. */
public enum DType {
  FP32("fp32", 4),
  FP16("fp16", 2),
  BF16("bf16", 2),
  FP8_E4M3("fp8_e4m3", 1),
  FP8_E5M2("fp8_e5m2", 1),
  INT8("int8", 1),
  UINT8("uint8", 1),
  INT32("int32", 4),
  INT64("int64", 8);

  private final String label;
  private final int bytes;

  DType(String label, int bytes) {
    this.label = label;
    this.bytes = bytes;
  }

  /** Name as users write it, for instance {@code bf16}. */
  public String label() {
    return label;
  }

  /** Size of one element in bytes. */
  public int bytes() {
    return bytes;
  }

  @Override
  public String toString() {
    return label;
  }
}

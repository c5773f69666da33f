package bifocal.core.safetensors;

import bifocal.core.tensor.DType;
import io.vavr.collection.Array;
import io.vavr.collection.Seq;
import io.vavr.control.Option;

/** The element types of safetensors files that tensors here can have. */
enum SafetensorsType {
  F32(DType.FP32),
  F16(DType.FP16),
  BF16(DType.BF16),
  F8_E4M3(DType.FP8_E4M3),
  F8_E5M2(DType.FP8_E5M2),
  I8(DType.INT8),
  U8(DType.UINT8),
  I32(DType.INT32),
  I64(DType.INT64);

  private final DType dtype;

  SafetensorsType(DType dtype) {
    this.dtype = dtype;
  }

  DType dtype() {
    return dtype;
  }

  static Seq<String> names() {
    return Array.of(values()).map(SafetensorsType::name);
  }

  static Option<SafetensorsType> find(String name) {
    return Array.of(values()).find(type -> type.name().equals(name));
  }

  static SafetensorsType of(DType dtype) {
    return Array.of(values()).find(type -> type.dtype == dtype).get();
  }
}

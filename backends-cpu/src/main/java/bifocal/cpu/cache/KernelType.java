package bifocal.cpu.cache;

import bifocal.core.cache.KvCacheDtype;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;

/**
 * Element types of the CPU kernels. The code is what the parameter blocks hold.
 *
 * <p>Types of one byte and of two bytes lie in the cache in pairs: two head dimensions of a key,
 * two tokens of a value. That is the operand order of the dot-product instructions.
 */
public enum KernelType {
  FLOAT32(0, 4, 1),
  FLOAT16(1, 2, 2),
  BFLOAT16(2, 2, 2),
  FLOAT8_E4M3(3, 1, 2),
  FLOAT8_E5M2(4, 1, 2),
  INT8_PER_TOKEN_HEAD(5, 1, 2),
  FLOAT8_PER_TOKEN_HEAD(6, 1, 2);

  private static final KernelType[] BY_CODE = values();

  private final int code;
  private final int bytes;
  private final int packing;

  /** Made once, so that asking for a type costs no object. */
  private final Option<KernelType> present = Option.some(this);

  KernelType(int code, int bytes, int packing) {
    this.code = code;
    this.bytes = bytes;
    this.packing = packing;
  }

  /** Number in the parameter blocks. */
  public int code() {
    return code;
  }

  /** Bytes of an element. */
  public int bytes() {
    return bytes;
  }

  /** Elements that lie together in the cache: 1 or 2. */
  public int packing() {
    return packing;
  }

  /** Whether each token and head has its own scale in the cache. */
  public boolean perTokenHead() {
    return this == INT8_PER_TOKEN_HEAD || this == FLOAT8_PER_TOKEN_HEAD;
  }

  /** The type with a code. */
  public static KernelType ofCode(int code) {
    return BY_CODE[code];
  }

  /** The type of queries, outputs, and of keys and values before they are cached. */
  public static Option<KernelType> of(DType dtype) {
    return switch (dtype) {
      case FP32 -> FLOAT32.present;
      case FP16 -> FLOAT16.present;
      case BF16 -> BFLOAT16.present;
      case FP8_E4M3, FP8_E5M2, INT8, UINT8, INT32, INT64 -> Option.none();
    };
  }

  /** The type of a cache, absent when these kernels do not read it. */
  public static Option<KernelType> of(KvCacheDtype dtype) {
    return switch (dtype) {
      case FLOAT32 -> Option.some(FLOAT32);
      case FLOAT16 -> Option.some(FLOAT16);
      case BFLOAT16 -> Option.some(BFLOAT16);
      case FP8, FP8_E4M3 -> Option.some(FLOAT8_E4M3);
      case FP8_E5M2 -> Option.some(FLOAT8_E5M2);
      case INT8_PER_TOKEN_HEAD -> Option.some(INT8_PER_TOKEN_HEAD);
      case FP8_PER_TOKEN_HEAD -> Option.some(FLOAT8_PER_TOKEN_HEAD);
      case AUTO,
          FP8_INC,
          FP8_DS_MLA,
          NVFP4_DS_MLA,
          TURBOQUANT_K8V4,
          TURBOQUANT_4BIT_NC,
          TURBOQUANT_K3V4_NC,
          TURBOQUANT_3BIT_NC,
          INT4_PER_TOKEN_HEAD,
          NVFP4,
          NVFP4_4OVER6 ->
          Option.none();
    };
  }
}

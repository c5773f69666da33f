package bifocal.tvm;

/** The numbers by which a {@code TVMFFIAny} says what it holds. */
final class TypeIndex {
  static final int NONE = 0;
  static final int INT = 1;
  static final int BOOL = 2;
  static final int FLOAT = 3;
  static final int OPAQUE = 4;
  static final int DATA_TYPE = 5;
  static final int DEVICE = 6;
  static final int DL_TENSOR = 7;
  static final int RAW_TEXT = 8;
  static final int BYTE_ARRAY = 9;
  static final int SMALL_TEXT = 11;
  static final int SMALL_BYTES = 12;

  /** From here on the value is the address of an object that counts its references. */
  static final int FIRST_OBJECT = 64;

  static final int TEXT = 65;
  static final int BYTES = 66;
  static final int ERROR = 67;
  static final int FUNCTION = 68;
  static final int SHAPE = 69;
  static final int TENSOR = 70;
  static final int ARRAY = 71;
  static final int LIST = 75;

  private TypeIndex() {}
}

package bifocal.tvm;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.channels.FileChannel.MapMode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * The names by which a library is linked, read from its file (ELF, 64 bits, little-endian) before
 * it is loaded.
 *
 * @param exported what others may use
 * @param needed what somebody else must have
 */
record LibrarySymbols(Seq<String> exported, Seq<String> needed) {
  private static final int MAGIC = 0x464C457F;
  private static final short BITS_64_LITTLE_ENDIAN = 0x0102;
  private static final int DYNAMIC_SYMBOLS = 11;
  private static final int SYMBOL_BYTES = 24;

  /** Binding of a symbol that every user of it needs; a weak one may be missing. */
  private static final int GLOBAL = 1;

  /**
   * Reads a library file.
   *
   * @throws BifocalException {@code NATIVE_MISSING} if it is no library of this kind
   */
  static LibrarySymbols of(Path file) {
    try (FileChannel channel = FileChannel.open(file)) {
      ByteBuffer content =
          channel.map(MapMode.READ_ONLY, 0, channel.size()).order(ByteOrder.LITTLE_ENDIAN);
      if (content.getInt(0) != MAGIC || content.getShort(4) != BITS_64_LITTLE_ENDIAN) {
        throw noLibrary(file);
      }
      return read(content);
    } catch (IndexOutOfBoundsException e) {
      throw noLibrary(file).causedBy(e);
    } catch (IOException e) {
      throw BifocalException.of(
              ErrorCode.NATIVE_MISSING, "library " + file, "cannot be read", "a readable file")
          .causedBy(e);
    }
  }

  private static LibrarySymbols read(ByteBuffer content) {
    long headers = content.getLong(40);
    int headerBytes = Short.toUnsignedInt(content.getShort(58));
    int headerCount = Short.toUnsignedInt(content.getShort(60));
    Vector<String> exported = Vector.empty();
    Vector<String> needed = Vector.empty();
    for (int i = 0; i < headerCount; i++) {
      int header = Math.toIntExact(headers + (long) i * headerBytes);
      if (content.getInt(header + 4) == DYNAMIC_SYMBOLS) {
        int names =
            Math.toIntExact(
                content.getLong(
                    Math.toIntExact(
                        headers + (long) content.getInt(header + 40) * headerBytes + 24)));
        int first = Math.toIntExact(content.getLong(header + 24));
        int end = Math.toIntExact(first + content.getLong(header + 32));
        for (int symbol = first + SYMBOL_BYTES; symbol < end; symbol += SYMBOL_BYTES) {
          String name = name(content, names + content.getInt(symbol));
          boolean elsewhere = content.getShort(symbol + 6) == 0;
          if (!elsewhere) {
            exported = exported.append(name);
          } else if (content.get(symbol + 4) >>> 4 == GLOBAL) {
            needed = needed.append(name);
          }
        }
      }
    }
    return new LibrarySymbols(exported, needed);
  }

  private static String name(ByteBuffer content, int start) {
    int end = start;
    while (content.get(end) != 0) {
      end++;
    }
    byte[] name = new byte[end - start];
    content.get(start, name);
    return new String(name, StandardCharsets.UTF_8);
  }

  private static BifocalException noLibrary(Path file) {
    return BifocalException.of(
        ErrorCode.NATIVE_MISSING,
        "file " + file,
        "no library",
        "an ELF library of 64 bits, little-endian");
  }
}

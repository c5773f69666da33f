package bifocal.core.safetensors;

import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.error.FileFailure;
import bifocal.core.tensor.TensorView;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.json.JsonMapper;
import io.vavr.Tuple2;
import io.vavr.collection.LinkedHashMap;
import io.vavr.collection.Map;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.Channels;
import java.nio.channels.FileChannel;
import java.nio.channels.WritableByteChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.HexFormat;
import java.util.List;

/**
 * The contents of a safetensors file: eight bytes with the header's length, the header in JSON, the
 * tensors in little-endian order.
 *
 * @param metadata free texts by key
 * @param tensors tensors in host memory by name
 */
public record Safetensors(Map<String, String> metadata, Map<String, TensorView> tensors) {
  private static final int PREFIX = Long.BYTES;
  private static final long MOST_HEADER_BYTES = 100_000_000;
  private static final long ALIGNMENT = 64;
  private static final int CHUNK = 1 << 24;
  private static final JsonMapper MAPPER = new JsonMapper();

  /** Tensors without texts. */
  public static Safetensors of(Map<String, TensorView> tensors) {
    return new Safetensors(LinkedHashMap.empty(), tensors);
  }

  /**
   * Reads a file.
   *
   * @param owner of the tensors' memory
   * @throws BifocalException {@code INVALID_OPTION} when there is no such file, {@code
   *     MALFORMED_INPUT} when anything in it is not as the format says, {@code MEMORY_TOO_SMALL}
   */
  public static Safetensors read(Path path, Arena owner) {
    requireLittleEndian();
    requireRegular(path);
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      return read(channel, owner);
    } catch (BifocalException e) {
      throw e.in("'" + path + "'");
    } catch (IOException e) {
      throw FileFailure.reading("file", path, e);
    }
  }

  /** A pipe or a device has no length, which the format needs. */
  private static void requireRegular(Path path) {
    if (Files.exists(path) && !Files.isRegularFile(path)) {
      String name = path.toString();
      String seen = Files.isDirectory(path) ? "a folder" : "a pipe or a device";
      throw BifocalException.of(
          ErrorCode.INVALID_OPTION,
          "file '" + name + "'",
          name.isEmpty() ? "no name" : seen,
          "a file that can be read");
    }
  }

  /**
   * Reads a file's free texts alone.
   *
   * @throws BifocalException as {@link #read}
   */
  public static Map<String, String> readMetadata(Path path) {
    requireLittleEndian();
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      return header(channel).metadata();
    } catch (BifocalException e) {
      throw e.in("'" + path + "'");
    } catch (IOException e) {
      throw FileFailure.reading("file", path, e);
    }
  }

  /**
   * Whether a file begins as this format does, even one that is cut: no text does, since its length
   * would be absurd. A pipe is none, and is not opened: who reads it next would find it empty.
   */
  public static boolean recognises(Path path) {
    if (!Files.isRegularFile(path)) {
      return false;
    }
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.READ)) {
      ByteBuffer start = ByteBuffer.allocate(PREFIX + 1).order(ByteOrder.LITTLE_ENDIAN);
      long bytes = Math.min(channel.size(), start.capacity());
      fill(channel, start.limit((int) bytes), 0);
      return switch ((int) bytes) {
        case PREFIX + 1 -> plausible(start.getLong(0)) && start.get(PREFIX) == '{';
        case PREFIX -> plausible(start.getLong(0));
        default -> HexFormat.of().formatHex(start.array(), 0, (int) bytes).matches("(..)*00(..)*");
      };
    } catch (IOException e) {
      return false;
    }
  }

  private static Safetensors read(FileChannel channel, Arena owner) throws IOException {
    SafetensorsHeader header = header(channel);
    long dataStart = channel.size() - header.dataBytes();
    return new Safetensors(
        header.metadata(),
        header.entries().mapValues(entry -> tensor(channel, dataStart, entry, owner)));
  }

  private static SafetensorsHeader header(FileChannel channel) throws IOException {
    long bytes = channel.size();
    ByteBuffer prefix = ByteBuffer.allocate(PREFIX).order(ByteOrder.LITTLE_ENDIAN);
    fill(channel, prefix, 0);
    long headerBytes = prefix.getLong(0);
    if (!plausible(headerBytes)) {
      throw BifocalException.of(
          ErrorCode.MALFORMED_INPUT,
          "no safetensors file: length of the header in its first 8 bytes",
          Long.toUnsignedString(headerBytes),
          "2.." + MOST_HEADER_BYTES);
    }
    if (headerBytes > bytes - PREFIX) {
      throw cut("the file is cut inside its header", bytes, PREFIX + headerBytes);
    }
    ByteBuffer json = ByteBuffer.allocate((int) headerBytes);
    fill(channel, json, PREFIX);
    return SafetensorsHeader.parse(json.array(), bytes, PREFIX + headerBytes);
  }

  private static boolean plausible(long headerBytes) {
    return headerBytes >= 2 && headerBytes <= MOST_HEADER_BYTES;
  }

  private static BifocalException cut(String what, long bytes, long least) {
    return BifocalException.of(
            ErrorCode.MALFORMED_INPUT, what, bytes + " bytes", "at least " + least)
        .withRemedy("write or copy it again");
  }

  private static TensorView tensor(
      FileChannel channel, long dataStart, SafetensorsHeader.Entry entry, Arena owner) {
    long bytes = entry.end() - entry.begin();
    MemorySegment memory;
    try {
      memory = owner.allocate(bytes, ALIGNMENT);
      for (long at = 0; at < bytes; at += CHUNK) {
        ByteBuffer part = memory.asSlice(at, Math.min(CHUNK, bytes - at)).asByteBuffer();
        fill(channel, part, dataStart + entry.begin() + at);
      }
    } catch (OutOfMemoryError | IllegalArgumentException e) {
      throw BifocalException.of(
              ErrorCode.MEMORY_TOO_SMALL, "memory of a tensor", "refused", bytes + " bytes")
          .causedBy(e);
    } catch (IOException e) {
      throw BifocalException.of(
              ErrorCode.INVALID_OPTION,
              "a tensor's data",
              FileFailure.reason(e),
              bytes + " bytes that can be read")
          .causedBy(e);
    }
    return TensorView.ofHost(memory, entry.type().dtype(), entry.shape());
  }

  private static void fill(FileChannel channel, ByteBuffer into, long from) throws IOException {
    long at = from;
    while (into.hasRemaining()) {
      int read = channel.read(into, at);
      if (read < 0) {
        throw cut("the file is cut, or no safetensors file", channel.size(), at + into.remaining());
      }
      at += read;
    }
  }

  /**
   * Requires that a file can be written at a path, before any work is done for it.
   *
   * @throws BifocalException {@code INVALID_OPTION}
   */
  public static void requireWritable(Path path) {
    if (Files.isDirectory(path)) {
      throw notWritable(path, path.toString().isEmpty() ? "no name" : "a folder");
    }
    Path folder = folder(path);
    if (!Files.isDirectory(folder)) {
      throw notWritable(
          path,
          Files.exists(folder) ? "its folder is a file" : "its folder '" + folder + "' is missing");
    }
    if (!Files.isWritable(folder)) {
      throw notWritable(path, "its folder '" + folder + "' is not writable");
    }
  }

  /**
   * Writes a file as a whole: until everything is written, what was there before stays there. A
   * symbolic link stays one, and what it names is written; a pipe or a device takes the bytes as
   * they come.
   *
   * @throws BifocalException {@code INVALID_OPTION} when the file cannot be written
   */
  public void write(Path path) {
    requireLittleEndian();
    try {
      if (Files.exists(path) && !Files.isRegularFile(path)) {
        try (OutputStream out = Files.newOutputStream(path, StandardOpenOption.WRITE)) {
          write(Channels.newChannel(out));
        }
      } else {
        writeWhole(Files.isSymbolicLink(path) && Files.exists(path) ? path.toRealPath() : path);
      }
    } catch (IOException e) {
      throw FileFailure.writing("file", path, e);
    }
  }

  private static BifocalException notWritable(Path path, String why) {
    return BifocalException.of(
        ErrorCode.INVALID_OPTION,
        "nothing can be written to '" + path + "'",
        why,
        "a file in a folder that can be written to");
  }

  private void writeWhole(Path path) throws IOException {
    Path unfinished =
        folder(path)
            .resolve("." + path.getFileName() + "." + ProcessHandle.current().pid() + ".part");
    try {
      try (FileChannel channel =
          FileChannel.open(unfinished, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
        write(channel);
        channel.force(true);
      }
      Files.move(
          unfinished, path, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
    } finally {
      discard(unfinished);
    }
  }

  private static void discard(Path unfinished) {
    try {
      Files.deleteIfExists(unfinished);
    } catch (IOException e) {
      unfinished.toFile().deleteOnExit();
    }
  }

  private void write(WritableByteChannel channel) throws IOException {
    byte[] header = header();
    ByteBuffer prefix = ByteBuffer.allocate(PREFIX).order(ByteOrder.LITTLE_ENDIAN);
    drain(channel, prefix.putLong(0, header.length));
    drain(channel, ByteBuffer.wrap(header));
    for (TensorView tensor : tensors.values()) {
      long bytes = tensor.elements() * tensor.dtype().bytes();
      for (long at = 0; at < bytes; at += CHUNK) {
        drain(channel, tensor.data().asSlice(at, Math.min(CHUNK, bytes - at)).asByteBuffer());
      }
    }
  }

  private byte[] header() throws JsonProcessingException {
    java.util.Map<String, Object> header = new java.util.LinkedHashMap<>();
    if (!metadata.isEmpty()) {
      header.put("__metadata__", metadata.toJavaMap());
    }
    long at = 0;
    for (Tuple2<String, TensorView> named : tensors) {
      TensorView tensor = named._2();
      if (!tensor.contiguous()) {
        throw BifocalException.of(
            ErrorCode.SHAPE_MISMATCH, "tensor '" + named._1() + "'", tensor, "without gaps");
      }
      long end = at + tensor.elements() * tensor.dtype().bytes();
      java.util.Map<String, Object> entry = new java.util.LinkedHashMap<>();
      entry.put("dtype", SafetensorsType.of(tensor.dtype()).name());
      entry.put("shape", tensor.shape());
      entry.put("data_offsets", List.of(at, end));
      header.put(named._1(), entry);
      at = end;
    }
    return padded(MAPPER.writeValueAsString(header)).getBytes(StandardCharsets.UTF_8);
  }

  /** Spaces at the end, so that the data begins at a multiple of eight bytes. */
  private static String padded(String json) {
    int bytes = json.getBytes(StandardCharsets.UTF_8).length;
    return json + " ".repeat(Math.floorMod(-bytes, PREFIX));
  }

  private static void drain(WritableByteChannel channel, ByteBuffer from) throws IOException {
    while (from.hasRemaining()) {
      channel.write(from);
    }
  }

  private static Path folder(Path path) {
    Path parent = path.toAbsolutePath().getParent();
    return parent == null ? path.toAbsolutePath() : parent;
  }

  private static void requireLittleEndian() {
    if (ByteOrder.nativeOrder() != ByteOrder.LITTLE_ENDIAN) {
      throw BifocalException.of(
          ErrorCode.UNSUPPORTED, "safetensors files", "a big-endian host", "little-endian");
    }
  }
}

package bifocal.core.safetensors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import bifocal.core.device.Device;
import bifocal.core.error.BifocalException;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import io.vavr.collection.LinkedHashMap;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** What is written is read again, and what is not as the format says is refused. */
class SafetensorsTest {
  private final Arena arena = Arena.ofConfined();
  @TempDir private Path folder;

  @AfterEach
  void release() {
    arena.close();
  }

  @Test
  void writtenTensorsAndTextsAreReadAgain() {
    Path path = folder.resolve("a.safetensors");
    TensorView floats = floats(1.5f, -2f, Float.NaN, 4f, 5f, 6f);
    TensorView none = TensorView.ofHost(arena.allocate(0), DType.BF16, 0, 7);
    new Safetensors(
            LinkedHashMap.of("scale", "0.5", "näme", "\"x\""),
            LinkedHashMap.of("out", floats, "none", none, "scalar", scalar()))
        .write(path);
    Safetensors read = Safetensors.read(path, arena);
    assertThat(read.metadata().toJavaMap()).containsEntry("näme", "\"x\"").hasSize(2);
    assertThat(read.tensors().keySet()).containsExactly("out", "none", "scalar");
    TensorView out = read.tensors().get("out").get();
    assertThat(out.shape()).containsExactly(2, 3);
    assertThat(out.data().mismatch(floats.data())).isEqualTo(-1);
    assertThat(read.tensors().get("none").get().shape()).containsExactly(0, 7);
    assertThat(read.tensors().get("scalar").get().rank()).isZero();
  }

  @Test
  void aLinkStaysALinkAndItsTargetIsWritten() throws IOException {
    Path target = Files.writeString(folder.resolve("target.safetensors"), "before");
    Path link = Files.createSymbolicLink(folder.resolve("link.safetensors"), target);

    Safetensors.of(LinkedHashMap.of("x", floats(1, 2, 3, 4, 5, 6))).write(link);

    assertThat(link).isSymbolicLink();
    assertThat(Safetensors.read(target, arena).tensors().keySet()).containsExactly("x");
  }

  @Test
  void dataBeginsAtAMultipleOfEightBytes() throws IOException {
    Path path = folder.resolve("a.safetensors");
    Safetensors.of(LinkedHashMap.of("odd", floats(1, 2, 3, 4, 5, 6))).write(path);
    long header =
        ByteBuffer.wrap(Files.readAllBytes(path)).order(ByteOrder.LITTLE_ENDIAN).getLong();
    assertThat(header % 8).isZero();
  }

  @Test
  void numbersAreLittleEndian() throws IOException {
    Path path = folder.resolve("a.safetensors");
    write(path, "{\"x\":{\"dtype\":\"I32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 1, 2, 0, 0);
    TensorView x = Safetensors.read(path, arena).tensors().get("x").get();
    assertThat(x.data().get(ValueLayout.JAVA_INT_UNALIGNED, 0)).isEqualTo(513);
  }

  @Test
  void failedWriteLeavesTheOldFileAndNothingElse() throws IOException {
    Path path = folder.resolve("a.safetensors");
    Files.writeString(path, "before");
    TensorView gaps =
        TensorView.of(arena.allocate(64), DType.FP32, Device.HOST, new long[] {2}, new long[] {3});
    assertThatThrownBy(() -> Safetensors.of(LinkedHashMap.of("gaps", gaps)).write(path))
        .isInstanceOf(BifocalException.class);
    assertThat(path).hasContent("before");
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files).containsExactly(path);
    }
  }

  @Test
  void foldersAndMissingFoldersCannotBeWritten() {
    for (Path path : new Path[] {folder, folder.resolve("none").resolve("a.safetensors")}) {
      refused(ErrorCode.INVALID_OPTION, () -> Safetensors.requireWritable(path));
      refused(
          ErrorCode.INVALID_OPTION,
          () -> Safetensors.of(LinkedHashMap.of("x", floats(1, 2, 3, 4, 5, 6))).write(path));
    }
  }

  @Test
  void missingFileAndFolderAreRefused() {
    refused(ErrorCode.INVALID_OPTION, () -> Safetensors.read(folder.resolve("none"), arena));
    refused(ErrorCode.INVALID_OPTION, () -> Safetensors.read(folder, arena));
  }

  @Test
  void everyTruncationIsRefused() throws IOException {
    Path path = folder.resolve("a.safetensors");
    Safetensors.of(LinkedHashMap.of("x", floats(1, 2, 3, 4, 5, 6))).write(path);
    byte[] whole = Files.readAllBytes(path);
    for (int length = 0; length < whole.length; length++) {
      Files.write(path, Arrays.copyOf(whole, length));
      refused(ErrorCode.MALFORMED_INPUT, () -> Safetensors.read(path, arena));
    }
  }

  /** A file that is cut is called so, with what it has and what it should have. */
  @ParameterizedTest
  @CsvSource({
    "0, at least 8",
    "7, at least 8",
    "8, at least 72",
    "9, at least 72",
    "40, at least 72",
    "71, at least 72",
    "72, 96 bytes",
    "95, 96 bytes"
  })
  void aCutFileIsCalledCutWithItsSizes(int length, String wanted) throws IOException {
    Path path = folder.resolve("a.safetensors");
    Safetensors.of(LinkedHashMap.of("x", floats(1, 2, 3, 4, 5, 6))).write(path);
    Files.write(path, Arrays.copyOf(Files.readAllBytes(path), length));

    for (ThrowingCallable reading :
        List.<ThrowingCallable>of(
            () -> Safetensors.read(path, arena), () -> Safetensors.readMetadata(path))) {
      assertThatThrownBy(reading)
          .hasMessageContaining("'" + path + "': the file is cut")
          .hasMessageContaining(length + " bytes, wanted " + wanted);
    }
  }

  /** Cut or not, it is told from text by its first bytes. */
  @Test
  void everyCutFileOfTwoBytesAndMoreIsRecognised() throws IOException {
    Path path = folder.resolve("a.safetensors");
    Safetensors.of(LinkedHashMap.of("x", floats(1, 2, 3, 4, 5, 6))).write(path);
    byte[] whole = Files.readAllBytes(path);
    for (int length = 2; length <= whole.length; length++) {
      Files.write(path, Arrays.copyOf(whole, length));
      assertThat(Safetensors.recognises(path)).as("%d bytes", length).isTrue();
    }
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "{", "{}", "{\"a\":1}", "{\"requests\":[]}", "hello, world"})
  void noTextIsRecognised(String text) throws IOException {
    assertThat(Safetensors.recognises(Files.writeString(folder.resolve("text"), text))).isFalse();
  }

  @Test
  void bytesBehindTheLastTensorAreRefused() throws IOException {
    Path path = folder.resolve("a.safetensors");
    write(path, "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1, 2);
    refused(ErrorCode.MALFORMED_INPUT, () -> Safetensors.read(path, arena));
  }

  @ParameterizedTest
  @CsvSource({"0", "1", "-1", "9223372036854775807", "-9223372036854775808", "100000001", "57"})
  void wrongLengthOfTheHeaderIsRefused(long length) throws IOException {
    Path path = folder.resolve("a.safetensors");
    byte[] json =
        "{\"x\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}"
            .getBytes(StandardCharsets.UTF_8);
    ByteBuffer file = ByteBuffer.allocate(8 + json.length + 1).order(ByteOrder.LITTLE_ENDIAN);
    file.putLong(length).put(json);
    Files.write(path, file.array());
    refused(ErrorCode.MALFORMED_INPUT, () -> Safetensors.read(path, arena));
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      value = {
        "not JSON | {\"x\"",
        "two objects | {} {}",
        "an array | []",
        "a tensor that is a number | {\"x\":1}",
        "an unknown type | {\"x\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}",
        "a type that is a number | {\"x\":{\"dtype\":4,\"shape\":[1],\"data_offsets\":[0,4]}}",
        "no type | {\"x\":{\"shape\":[1],\"data_offsets\":[0,4]}}",
        "no shape | {\"x\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}",
        "no offsets | {\"x\":{\"dtype\":\"F32\",\"shape\":[1]}}",
        "an unknown key | {\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"y\":1}}",
        "a negative size | {\"x\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}",
        "a broken size | {\"x\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}",
        "a huge size |"
            + " {\"x\":{\"dtype\":\"F32\",\"shape\":[4611686018427387905],\"data_offsets\":[0,4]}}",
        "a size beyond 64 bits |"
            + " {\"x\":{\"dtype\":\"F32\",\"shape\":[18446744073709551617],\"data_offsets\":[0,4]}}",
        "sizes that overflow |"
            + " {\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,4]}}",
        "a shape of other size | {\"x\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}",
        "offsets reversed | {\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}",
        "one offset | {\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4]}}",
        "an end beyond the file |"
            + " {\"x\":{\"dtype\":\"F32\",\"shape\":[250000000000],\"data_offsets\":[0,1000000000000]}}",
        "a gap before | {\"x\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[1,4]}}",
        "tensors that overlap |"
            + " {\"x\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},\"y\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
        "a gap between |"
            + " {\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},\"y\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
        "a name twice |"
            + " {\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
        "a text that is a number |"
            + " {\"__metadata__\":{\"scale\":1},\"x\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}",
      })
  void malformedHeaderIsRefused(String what, String json) throws IOException {
    Path path = folder.resolve("a.safetensors");
    write(path, json, 0, 0, 0, 0);
    refused(ErrorCode.MALFORMED_INPUT, () -> Safetensors.read(path, arena));
  }

  /** A changed byte is read or refused; nothing else happens. */
  @Test
  void damagedFilesAreReadOrRefused() throws IOException {
    long seed = Long.getLong("bifocal.seed", 1);
    Random random = new Random(seed);
    Path path = folder.resolve("a.safetensors");
    new Safetensors(LinkedHashMap.of("scale", "1"), LinkedHashMap.of("x", floats(1, 2, 3, 4, 5, 6)))
        .write(path);
    byte[] whole = Files.readAllBytes(path);
    for (int i = 0; i < 500; i++) {
      byte[] damaged = whole.clone();
      for (int hit = random.nextInt(1, 4); hit > 0; hit--) {
        damaged[random.nextInt(damaged.length)] = (byte) random.nextInt(256);
      }
      Files.write(path, damaged);
      try {
        Safetensors.read(path, arena);
      } catch (BifocalException e) {
        assertThat(e.code())
            .as("seed %d: %s", seed, e.getMessage())
            .isEqualTo(ErrorCode.MALFORMED_INPUT);
      }
    }
  }

  private static void write(Path path, String json, int... data) throws IOException {
    byte[] header = json.getBytes(StandardCharsets.UTF_8);
    ByteBuffer file =
        ByteBuffer.allocate(8 + header.length + data.length).order(ByteOrder.LITTLE_ENDIAN);
    file.putLong(header.length).put(header);
    for (int value : data) {
      file.put((byte) value);
    }
    Files.write(path, file.array());
  }

  private static void refused(ErrorCode code, ThrowingCallable call) {
    assertThatThrownBy(call)
        .isInstanceOfSatisfying(
            BifocalException.class, e -> assertThat(e.code()).as(e.getMessage()).isEqualTo(code));
  }

  private TensorView floats(float... six) {
    MemorySegment data = arena.allocateFrom(ValueLayout.JAVA_FLOAT, six);
    return TensorView.ofHost(data, DType.FP32, 2, 3);
  }

  private TensorView scalar() {
    return TensorView.ofHost(arena.allocateFrom(ValueLayout.JAVA_LONG, 42), DType.INT64);
  }
}

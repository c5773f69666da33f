package bifocal.cuda.pack;

import bifocal.core.tensor.DType;
import bifocal.cuda.fake.FakeCuda;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.function.Consumer;

/** A pack of kernels that no device could run: the stand-in for the driver loads its binaries. */
public final class SyntheticPack {
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final ObjectNode manifest = MAPPER.createObjectNode();
  private final Path directory;

  private SyntheticPack(Path directory) {
    this.directory = directory;
    manifest.put("format", 1).put("target", "sm_90").put("backend", "cuda");
    manifest.put("warp_size", 32).put("triton", "0.0.0").putArray("kernels");
  }

  /** An empty pack for 9.0. */
  public static SyntheticPack in(Path packs) {
    return new SyntheticPack(packs.resolve("sm_90"));
  }

  /** Adds a kernel with the arguments of its kind. */
  public SyntheticPack with(Specialisation specialisation) {
    ArrayNode kernels = (ArrayNode) manifest.get("kernels");
    String key = "kernel-" + kernels.size();
    ObjectNode kernel = kernels.addObject();
    kernel.put("key", key).put("file", key + ".cubin");
    kernel.put("kernel", "made_up").put("symbol", key).put("warp_size", 32);
    kernel.put("num_warps", 4).put("shared_memory", 65_536);
    kernel.put("global_scratch_size", 0).put("profile_scratch_size", 0);
    if (specialisation instanceof Specialisation.Merge) {
      kernel.put("programmatic_launch", true);
    }
    SyntheticKernels.describe(kernel, specialisation);
    byte[] binary = binary(kernel);
    kernel.put("sha256", hash(binary));
    write(key + ".cubin", binary);
    return this;
  }

  /** Code that the stand-in for the driver loads. */
  private static byte[] binary(ObjectNode kernel) {
    StringBuilder parameters = new StringBuilder();
    for (JsonNode argument : kernel.get("arguments")) {
      parameters.append(parameters.isEmpty() ? "" : ",");
      parameters.append(argument.get("offset").intValue());
      parameters.append(':').append(argument.get("size").intValue());
    }
    return FakeCuda.image(
        90, "kernel " + kernel.get("symbol").textValue() + " 128 0 " + parameters);
  }

  /** Changes the manifest before it is written. */
  public SyntheticPack changed(Consumer<ObjectNode> change) {
    change.accept(manifest);
    return this;
  }

  /** Changes the first kernel of the manifest. */
  public SyntheticPack changedKernel(Consumer<ObjectNode> change) {
    change.accept((ObjectNode) manifest.get("kernels").get(0));
    return this;
  }

  /** Writes the manifest. */
  public Path write() {
    write(PackManifest.FILE, manifest.toString().getBytes(StandardCharsets.UTF_8));
    return directory.getParent();
  }

  /** Replaces a file of the pack. */
  public void write(String name, byte[] bytes) {
    try {
      Files.createDirectories(directory);
      Files.write(directory.resolve(name), bytes);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The pack's own directory. */
  public Path directory() {
    return directory;
  }

  JsonNode manifest() {
    return manifest;
  }

  /** A decode kernel's specialisation. */
  public static Specialisation.Attention decode(Specialisation.Variant variant) {
    return new Specialisation.Attention(
        Specialisation.Phase.DECODE,
        Specialisation.Engine.PORTABLE,
        variant,
        DType.BF16,
        CacheFormat.SAME,
        64,
        4,
        16,
        false,
        false);
  }

  private static String hash(byte[] bytes) {
    try {
      return HexFormat.of().formatHex(MessageDigest.getInstance("SHA-256").digest(bytes));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }
}

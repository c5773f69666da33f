package bifocal.cuda.flashattention;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Consumer;
import org.opentest4j.TestAbortedException;

/**
 * A pack of stand-ins for FlashAttention's forwards, which compute on the host. Where there is no C
 * compiler, or no TVM-FFI runtime was fetched, a test is skipped and says so.
 */
final class FakeForwards {
  private static final Path SOURCE = Path.of("src", "test", "native", "fake_flash_attention.c");
  private static final Path RUNTIME =
      Path.of(
          System.getProperty("bifocal.tvm.native", "../tvm-ffi/target/native"), "libtvm_ffi.so");
  private static final String NEEDED = "libneeded.so";
  private static final ObjectMapper MAPPER = new ObjectMapper();

  private final Path directory;
  private final ObjectNode manifest = MAPPER.createObjectNode();

  private FakeForwards(Path directory) {
    this.directory = directory;
  }

  /** A pack without forwards, in a folder of packs. */
  static FakeForwards in(Path packs) throws IOException {
    if (!Files.exists(RUNTIME)) {
      throw new TestAbortedException("no TVM-FFI runtime at " + RUNTIME + ": see tvm-ffi's build");
    }
    FakeForwards pack = new FakeForwards(packs.resolve(ForwardPack.FOLDER).resolve("sm_90a"));
    Files.createDirectories(pack.directory);
    Files.deleteIfExists(pack.directory.resolve("libtvm_ffi.so"));
    Files.createSymbolicLink(pack.directory.resolve("libtvm_ffi.so"), RUNTIME.toRealPath());
    Files.writeString(pack.directory.resolve(NEEDED), "");
    pack.manifest
        .put("format", ForwardManifest.FORMAT)
        .put("family", "fa4")
        .put("target", "sm_90a");
    pack.manifest.putObject("needs").put("file", NEEDED);
    pack.manifest
        .putArray("runtime")
        .addObject()
        .put("file", "libtvm_ffi.so")
        .put("sha256", sha256(RUNTIME));
    pack.manifest.putArray("modules");
    return pack;
  }

  /** The same pack with a forward. */
  FakeForwards with(ForwardKey key) throws IOException {
    String function = key.sight().label();
    Path library = directory.resolve(function + ".so");
    if (!Files.exists(library)) {
      compile(library, key.sight());
    }
    ((ArrayNode) manifest.get("modules"))
        .addObject()
        .put("name", function)
        .put("file", library.getFileName().toString())
        .put("sha256", sha256(library))
        .put("package", "flash-attn-4")
        .put("version", ForwardManifest.VERSION)
        .put("dtype", key.dtype().label())
        .put("head_size", key.headSize())
        .put("group", key.group())
        .put("page_size", key.pageSize())
        .put("sight", key.sight().label());
    return this;
  }

  /** The same pack with another manifest. */
  FakeForwards changed(Consumer<ObjectNode> change) {
    change.accept(manifest);
    return this;
  }

  /** The same pack with another last forward. */
  FakeForwards changedForward(Consumer<ObjectNode> change) {
    ArrayNode modules = (ArrayNode) manifest.get("modules");
    change.accept((ObjectNode) modules.get(modules.size() - 1));
    return this;
  }

  Path directory() {
    return directory;
  }

  /** Writes the manifest; the folder of packs. */
  Path write() throws IOException {
    Files.writeString(directory.resolve("manifest.json"), manifest.toPrettyString());
    return directory.getParent().getParent();
  }

  private static void compile(Path library, ForwardKey.Sight sight) throws IOException {
    Path fresh = Files.createTempFile(library.getParent(), "fresh", ".so");
    List<String> command = new ArrayList<>(List.of("cc", "-std=gnu11", "-O1", "-shared", "-fPIC"));
    command.add("-D" + sight);
    command.addAll(List.of("-o", fresh.toString(), SOURCE.toString(), "-lm"));
    try {
      Process compiler = new ProcessBuilder(command).redirectErrorStream(true).start();
      String said = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (compiler.waitFor() != 0) {
        throw new AssertionError("cc refuses " + SOURCE + ":\n" + said);
      }
    } catch (IOException e) {
      throw new TestAbortedException("no C compiler here: " + e.getMessage(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError(e);
    }
    Files.move(fresh, library, StandardCopyOption.REPLACE_EXISTING);
  }

  static String sha256(Path file) throws IOException {
    try {
      return HexFormat.of()
          .formatHex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file)));
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }
}

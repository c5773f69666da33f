package bifocal.cuda.flashinfer;

import bifocal.core.tensor.DType;
import bifocal.cuda.flashinfer.ModuleKey.Engine;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.vavr.Tuple2;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Consumer;
import org.opentest4j.TestAbortedException;

/**
 * A pack of stand-ins for FlashInfer's modules, which compute on the host. They are compiled once;
 * where there is no C compiler, or no TVM-FFI runtime was fetched, a test is skipped and says so.
 */
final class FakeModules {
  static final String TARGET = "sm_90a";

  private static final Path SOURCE = Path.of("src", "test", "native", "fake_flashinfer.c");
  private static final Path BUILT = Path.of("target", "fake-flashinfer");
  private static final Path RUNTIME =
      Path.of(
          System.getProperty("bifocal.tvm.native", "../tvm-ffi/target/native"), "libtvm_ffi.so");
  private static final ObjectMapper MAPPER = new ObjectMapper();
  private static final Map<String, Path> LIBRARIES = new ConcurrentHashMap<>();

  private final Path directory;
  private final ObjectNode manifest;
  private final List<Consumer<ObjectNode>> changes = new ArrayList<>();

  private FakeModules(Path directory) {
    this.directory = directory;
    this.manifest = MAPPER.createObjectNode();
    manifest.put("format", 1).put("family", "flashinfer").put("target", TARGET);
    manifest.putArray("modules");
    manifest.putArray("runtime");
  }

  /** A pack without modules, in a folder of packs. */
  static FakeModules in(Path packs) {
    try {
      Path directory = packs.resolve(FlashInferPack.FOLDER).resolve(TARGET);
      Files.createDirectories(directory);
      return new FakeModules(directory).runtime();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** The runtime that modules are called by. */
  static Path runtimeOrSkip() {
    if (!Files.exists(RUNTIME)) {
      throw new TestAbortedException("no TVM-FFI runtime at " + RUNTIME + ": see tvm-ffi's build");
    }
    return RUNTIME.toAbsolutePath();
  }

  private FakeModules runtime() {
    link(runtimeOrSkip(), "libtvm_ffi.so");
    ((ArrayNode) manifest.get("runtime"))
        .addObject()
        .put("file", "libtvm_ffi.so")
        .put("sha256", sha256(RUNTIME));
    return this;
  }

  /** The same pack with a module. */
  FakeModules with(ModuleKey key) {
    return with(key, key.label());
  }

  /** The same pack with a module that asks for the code of its kernel at each run. */
  FakeModules withAsking(ModuleKey key) {
    return with(key, key.label() + "-asking", "CUBINS");
  }

  /** The same pack with a module whose functions take more than they should. */
  FakeModules withDrifted(ModuleKey key) {
    return with(key, key.label() + "-drifted", "DRIFTED");
  }

  private FakeModules with(ModuleKey key, String name, String... more) {
    List<String> defines = new ArrayList<>(defines(key));
    defines.addAll(List.of(more));
    Path library = library(defines);
    link(library, name + ".so");
    ObjectNode module = ((ArrayNode) manifest.get("modules")).addObject();
    module.put("uri", name).put("file", name + ".so").put("sha256", sha256(library));
    module.put("package", "flashinfer-python").put("version", "0.7.4").put("licence", "none");
    describe(key, module);
    ArrayNode exports = module.putArray("exports");
    for (Tuple2<String, ?> function : ModuleSignatures.of(key)) {
      exports.addObject().put("name", function._1).put("signature", function._2.toString());
    }
    return this;
  }

  private static void describe(ModuleKey key, ObjectNode module) {
    switch (key) {
      case ModuleKey.Decode(DType dtype, int head, boolean window, boolean cap) ->
          attention(module, "decode", Engine.FA2, dtype, head, window, cap);
      case ModuleKey.Prefill(Engine engine, DType dtype, int head, boolean window, boolean cap) -> {
        attention(module, "prefill", engine, dtype, head, window, cap);
        module.putObject("masks").putArray("paged_run").add(0).add(1);
      }
      case ModuleKey.Xqa(DType dtype, int head, int page, int group, boolean window) -> {
        module.put("kind", "xqa").put("window", window);
        module.put("head_size", head).put("page_size", page).put("group", group);
        types(module, dtype);
      }
    }
  }

  private static void types(ObjectNode module, DType dtype) {
    for (String type : new String[] {"dtype_q", "dtype_kv", "dtype_o"}) {
      module.put(type, dtype.label());
    }
  }

  private static void attention(
      ObjectNode module,
      String kind,
      Engine engine,
      DType dtype,
      int head,
      boolean window,
      boolean cap) {
    module.put("kind", kind).put("engine", engine.label());
    types(module, dtype);
    module.put("head_dim_qk", head).put("head_dim_vo", head);
    module.put("window", window).put("softcap", cap);
  }

  /** The same pack with another manifest. */
  FakeModules changed(Consumer<ObjectNode> change) {
    changes.add(change);
    return this;
  }

  /** Changes the last module. */
  FakeModules changedModule(Consumer<ObjectNode> change) {
    ArrayNode modules = (ArrayNode) manifest.get("modules");
    change.accept((ObjectNode) modules.get(modules.size() - 1));
    return this;
  }

  /** Writes the manifest; the folder of packs. */
  Path write() {
    changes.forEach(change -> change.accept(manifest));
    try {
      Files.writeString(directory.resolve(FlashInferPack.MANIFEST), manifest.toPrettyString());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    return directory.getParent().getParent();
  }

  Path directory() {
    return directory;
  }

  private void link(Path file, String name) {
    try {
      Path at = directory.resolve(name);
      Files.deleteIfExists(at);
      Files.createSymbolicLink(at, file.toRealPath());
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** What the source is compiled with. */
  private static List<String> defines(ModuleKey key) {
    return switch (key) {
      case ModuleKey.Decode(DType dtype, _, _, boolean cap) -> defines("DECODE", dtype, cap);
      case ModuleKey.Prefill(Engine engine, DType dtype, _, _, boolean cap) ->
          defines(engine.name(), dtype, cap);
      case ModuleKey.Xqa(DType dtype, _, _, _, _) -> defines("XQA", dtype, false);
    };
  }

  private static List<String> defines(String kind, DType dtype, boolean cap) {
    List<String> names = new ArrayList<>(List.of(kind));
    if (dtype == DType.FP16) {
      names.add("HALF");
    }
    if (cap) {
      names.add("CAP");
    }
    return names;
  }

  private static Path library(List<String> defines) {
    return LIBRARIES.computeIfAbsent(String.join("-", defines), name -> compile(defines, name));
  }

  private static Path compile(List<String> defines, String name) {
    try {
      Files.createDirectories(BUILT);
      Path library = BUILT.resolve(name + ".so");
      Path fresh = Files.createTempFile(BUILT, name, ".so");
      List<String> command =
          new ArrayList<>(List.of("cc", "-std=gnu11", "-O1", "-shared", "-fPIC"));
      defines.forEach(define -> command.add("-D" + define));
      command.addAll(List.of("-o", fresh.toString(), SOURCE.toString(), "-lm"));
      Process compiler = new ProcessBuilder(command).redirectErrorStream(true).start();
      String said = new String(compiler.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
      if (compiler.waitFor() != 0) {
        throw new AssertionError("cc refuses " + SOURCE + ":\n" + said);
      }
      Files.move(fresh, library, StandardCopyOption.REPLACE_EXISTING);
      return library.toAbsolutePath();
    } catch (IOException e) {
      throw new TestAbortedException("no C compiler here: " + e.getMessage(), e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError(e);
    }
  }

  private static String sha256(Path file) {
    try {
      return HexFormat.of()
          .formatHex(MessageDigest.getInstance("SHA-256").digest(Files.readAllBytes(file)));
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    } catch (NoSuchAlgorithmException e) {
      throw new AssertionError(e);
    }
  }
}

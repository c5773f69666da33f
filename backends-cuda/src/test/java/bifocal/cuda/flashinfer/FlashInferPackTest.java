package bifocal.cuda.flashinfer;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.device.ComputeCapability;
import bifocal.core.tensor.DType;
import bifocal.cuda.flashinfer.ModuleKey.Engine;
import bifocal.cuda.pack.PackRefusal;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.vavr.control.Validation;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is read of a manifest, and what is refused. */
class FlashInferPackTest {
  private static final ComputeCapability HOPPER = new ComputeCapability(9, 0);
  private static final ModuleKey.Prefill FA2 =
      new ModuleKey.Prefill(Engine.FA2, DType.BF16, 256, true, false);
  private static final ModuleKey.Decode DECODE =
      new ModuleKey.Decode(DType.BF16, 512, false, false);

  @TempDir Path packs;
  private FakeModules modules;

  @BeforeEach
  void modules() {
    modules = FakeModules.in(packs).with(DECODE).with(FA2);
  }

  @Test
  void modulesAreFoundByWhatTheyWereCompiledFor() {
    FlashInferPack pack = FlashInferPack.open(modules.write(), HOPPER).get();

    assertThat(pack.has(FA2)).isTrue();
    assertThat(pack.has(DECODE)).isTrue();
    assertThat(pack.has(new ModuleKey.Prefill(Engine.FA3, DType.BF16, 256, true, false))).isFalse();
    assertThat(pack.find(FA2).get().masks()).containsExactlyInAnyOrder(0, 1);
    assertThat(pack.labels())
        .containsExactly(
            "flashinfer-fa2-decode-bf16-d512", "flashinfer-fa2-prefill-bf16-d256-window");
  }

  @Test
  void aModuleThatIsNotThereIsRefusedByName() {
    FlashInferPack pack = FlashInferPack.open(modules.write(), HOPPER).get();
    ModuleKey missing = new ModuleKey.Decode(DType.BF16, 64, false, false);

    PackRefusal refusal = pack.find(missing).getError();

    assertThat(refusal.code()).isEqualTo(PackRefusal.Code.KERNEL_MISSING);
    assertThat(refusal.line()).contains("flashinfer-fa2-decode-bf16-d64");
  }

  @Test
  void kindsThatNothingCallsAreLeftOut() {
    modules.changedModule(module -> module.put("kind", "cascade"));

    FlashInferPack pack = FlashInferPack.open(modules.write(), HOPPER).get();

    assertThat(pack.labels()).containsExactly("flashinfer-fa2-decode-bf16-d512");
  }

  @Test
  void aFolderWithoutAPackSaysWhereItLooked() {
    PackRefusal refusal = FlashInferPack.open(packs.resolve("elsewhere"), HOPPER).getError();

    assertThat(refusal.code()).isEqualTo(PackRefusal.Code.NOT_FOUND);
    assertThat(refusal.line()).contains("elsewhere").contains("sm_90a");
  }

  @Test
  void anotherFormatIsRefused() {
    assertThat(refusedFor(manifest -> manifest.put("format", 2)).code())
        .isEqualTo(PackRefusal.Code.FORMAT);
  }

  @Test
  void anotherDeviceIsRefused() {
    assertThat(refusedFor(manifest -> manifest.put("target", "sm_80")).code())
        .isEqualTo(PackRefusal.Code.TARGET);
  }

  @Test
  void anotherVersionOfThePackageIsRefused() {
    PackRefusal refusal = refusedFor(manifest -> first(manifest).put("version", "0.7.5"));

    assertThat(refusal.code()).isEqualTo(PackRefusal.Code.FORMAT);
    assertThat(refusal.line()).contains("flashinfer-python 0.7.5").contains("0.7.4");
  }

  @Test
  void aFileElsewhereIsRefused() {
    assertThat(refusedFor(manifest -> first(manifest).put("file", "../decode.so")).code())
        .isEqualTo(PackRefusal.Code.MALFORMED);
  }

  @Test
  void twoModulesForTheSameAreRefused() {
    PackRefusal refusal =
        refusedFor(
            manifest -> ((ArrayNode) manifest.get("modules")).add(first(manifest).deepCopy()));

    assertThat(refusal.code()).isEqualTo(PackRefusal.Code.MALFORMED);
    assertThat(refusal.line()).contains("two for flashinfer-fa2-decode-bf16-d512");
  }

  @Test
  void aChangedFileIsRefused() throws IOException {
    FlashInferPack pack = FlashInferPack.open(modules.write(), HOPPER).get();
    ModuleEntry entry = pack.find(FA2).get();
    Path file = modules.directory().resolve(entry.file());
    byte[] content = Files.readAllBytes(file);
    content[content.length - 1]++;
    Files.delete(file);
    Files.write(file, content);

    Validation<PackRefusal, Path> found = pack.file(entry);

    assertThat(found.getError().code()).isEqualTo(PackRefusal.Code.HASH);
  }

  @Test
  void aFileThatIsGoneIsRefused() throws IOException {
    FlashInferPack pack = FlashInferPack.open(modules.write(), HOPPER).get();
    ModuleEntry entry = pack.find(DECODE).get();
    Files.delete(modules.directory().resolve(entry.file()));

    assertThat(pack.file(entry).getError().code()).isEqualTo(PackRefusal.Code.FILE_MISSING);
  }

  private PackRefusal refusedFor(Consumer<ObjectNode> change) {
    return FlashInferPack.open(modules.changed(change).write(), HOPPER).getError();
  }

  private static ObjectNode first(ObjectNode manifest) {
    return (ObjectNode) manifest.get("modules").get(0);
  }
}

package bifocal.cuda.flashattention;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.device.ComputeCapability;
import bifocal.core.layer.AttentionLayerSpec.Dense;
import bifocal.core.layer.AttentionMask;
import bifocal.core.tensor.DType;
import bifocal.cuda.flashattention.ForwardKey.Sight;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.pack.PackRefusal.Code;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What is checked of a pack of forwards before one of them is called. */
class ForwardPackTest {
  private static final ComputeCapability HOPPER = new ComputeCapability(9, 0);
  private static final ForwardKey CAUSAL = new ForwardKey(DType.BF16, 64, 2, 16, Sight.CAUSAL);

  @TempDir Path packs;

  private PackRefusal refusal(Consumer<ObjectNode> change) throws IOException {
    return ForwardPack.open(
            FakeForwards.in(packs)
                .with(CAUSAL.with(Sight.FULL))
                .with(CAUSAL)
                .changed(change)
                .write(),
            HOPPER)
        .getError();
  }

  private PackRefusal forwardRefusal(Consumer<ObjectNode> change) throws IOException {
    return ForwardPack.open(
            FakeForwards.in(packs)
                .with(CAUSAL.with(Sight.FULL))
                .with(CAUSAL)
                .changedForward(change)
                .write(),
            HOPPER)
        .getError();
  }

  private ForwardPack pack() throws IOException {
    return ForwardPack.open(
            FakeForwards.in(packs).with(CAUSAL.with(Sight.FULL)).with(CAUSAL).write(), HOPPER)
        .get();
  }

  private static Dense layer(int headSize, DType dtype) {
    return Dense.decoder(4, 2, headSize, dtype, AttentionMask.CAUSAL);
  }

  @Test
  void whatAManifestNamesIsFoundAndNothingElse() throws IOException {
    ForwardPack pack = pack();
    ForwardKey other = CAUSAL.with(Sight.BOUNDS);

    assertThat(pack.file(pack.find(CAUSAL).get()).get()).exists();
    assertThat(pack.pageSizes(layer(64, DType.BF16))).containsExactly(16);
    assertThat(pack.pageSizes(layer(128, DType.BF16))).isEmpty();
    assertThat(pack.pageSizes(layer(64, DType.FP16))).isEmpty();
    assertThat(pack.find(other).getError().line()).contains(other.label());
  }

  @Test
  void noPackAnotherDeviceAndAnotherTargetAreRefused() throws IOException {
    assertThat(ForwardPack.open(packs, HOPPER).getError().code()).isEqualTo(Code.NOT_FOUND);
    assertThat(ForwardPack.open(packs, new ComputeCapability(10, 0)).getError().code())
        .isEqualTo(Code.TARGET);
    assertThat(refusal(manifest -> manifest.put("target", "sm_100a")).code())
        .isEqualTo(Code.TARGET);
  }

  @Test
  void anotherFormatFamilyVersionOrTypeIsRefused() throws IOException {
    assertThat(refusal(manifest -> manifest.put("format", 1)).code()).isEqualTo(Code.FORMAT);
    assertThat(refusal(manifest -> manifest.put("family", "fa3")).code()).isEqualTo(Code.MALFORMED);
    assertThat(forwardRefusal(forward -> forward.put("version", "4.0.0b1")).line())
        .contains("4.0.0b1", ForwardManifest.VERSION);
    assertThat(forwardRefusal(forward -> forward.put("dtype", "fp32")).code())
        .isEqualTo(Code.MALFORMED);
    assertThat(forwardRefusal(forward -> forward.put("head_size", 0)).line()).contains("head_size");
    assertThat(forwardRefusal(forward -> forward.put("file", "../other.so")).line())
        .contains("../other.so");
  }

  @Test
  void aChangedLibraryIsRefused() throws IOException {
    ForwardPack pack = pack();
    Files.writeString(pack.directory().resolve("causal.so"), "changed");

    assertThat(pack.file(pack.find(CAUSAL).get()).getError().code()).isEqualTo(Code.HASH);
  }

  @Test
  void withoutTheLibraryOfNvidiaNothingIsLoadedAndTheUserIsToldWhatToInstall() throws IOException {
    ForwardPack pack = pack();
    Files.delete(pack.directory().resolve("libneeded.so"));

    assertThat(pack.file(pack.find(CAUSAL).get()).getError().line())
        .contains("libneeded.so", "nvidia-cutlass-dsl-libs-cu13");
  }
}

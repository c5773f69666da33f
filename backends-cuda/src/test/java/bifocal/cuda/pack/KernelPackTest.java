package bifocal.cuda.pack;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.device.ComputeCapability;
import bifocal.core.error.ErrorCode;
import bifocal.core.tensor.DType;
import bifocal.cuda.pack.PackRefusal.Code;
import bifocal.cuda.pack.Specialisation.Variant;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.vavr.control.Validation;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What is checked of a pack before a kernel of it is used, and what a refusal says. */
class KernelPackTest {
  private static final ComputeCapability HOPPER = new ComputeCapability(9, 0);
  private static final Specialisation DECODE = SyntheticPack.decode(Variant.CAUSAL);

  @TempDir Path packs;

  private SyntheticPack pack() {
    return SyntheticPack.in(packs).with(DECODE);
  }

  private Validation<PackRefusal, KernelPack> open(Path directory) {
    return KernelPack.open(directory, HOPPER);
  }

  private PackRefusal refusal(Consumer<ObjectNode> change) {
    return open(pack().changed(change).write()).getError();
  }

  private PackRefusal kernelRefusal(Consumer<ObjectNode> change) {
    return open(pack().changedKernel(change).write()).getError();
  }

  @Test
  void kernelIsFoundByWhatItWasCompiledFor() {
    KernelPack pack = open(pack().with(new Specialisation.Merge(DType.BF16, 64)).write()).get();

    KernelEntry kernel = pack.find(DECODE).get();

    assertThat(kernel.specialisation()).isEqualTo(DECODE);
    assertThat(kernel.threads()).isEqualTo(128);
    assertThat(kernel.tile().get()).isEqualTo(new KernelEntry.Tile(16, 4, 64));
    assertThat(kernel.grid().z()).isEqualTo(GridWord.Count.SPLITS);
    assertThat(kernel.arguments().head())
        .isEqualTo(new KernelArgument("q", new KernelArgument.Kind.Pointer(), "bf16", 0, 8, 16));
    assertThat(pack.find(new Specialisation.Merge(DType.BF16, 64)).isValid()).isTrue();
  }

  @Test
  void packIsFoundFromItsOwnDirectoryToo() {
    SyntheticPack pack = pack();
    pack.write();

    assertThat(open(pack.directory()).isValid()).isTrue();
  }

  @Test
  void missingKernelSaysWhichOneAndHowToBuildIt() {
    PackRefusal refusal =
        open(pack().write()).get().find(SyntheticPack.decode(Variant.GENERAL)).getError();

    assertThat(refusal.code()).isEqualTo(Code.KERNEL_MISSING);
    assertThat(refusal.line())
        .contains(
            "decode (general, portable) bf16, cache same, head size 64, group 4, blocks of 16")
        .contains("\"use\": \"decode\"")
        .contains("\"variant\": \"general\"")
        .contains("build_packs.py " + packs + " ")
        .contains("--target sm_90 --keep-others");
    assertThat(refusal.asException().code()).isEqualTo(ErrorCode.NATIVE_MISSING);
  }

  @Test
  void directoryWithoutPackSaysWhereItLooked() {
    PackRefusal refusal = open(packs.resolve("none")).getError();

    assertThat(refusal.code()).isEqualTo(Code.NOT_FOUND);
    assertThat(refusal.seen()).contains(packs.resolve("none/sm_90/manifest.json").toString());
  }

  @Test
  void kernelsOfAnotherTargetAreRefused() {
    SyntheticPack other = pack().changed(manifest -> manifest.put("target", "sm_80"));
    other.write();

    PackRefusal refusal = open(other.directory()).getError();

    assertThat(refusal.code()).isEqualTo(Code.TARGET);
    assertThat(refusal.line()).contains("kernels for sm_80").contains("sm_90");
  }

  @Test
  void kernelsOfAnotherPlatformAreRefused() {
    assertThat(refusal(manifest -> manifest.put("backend", "hip")).code()).isEqualTo(Code.TARGET);
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 2, 1000})
  void otherFormatsAreRefused(int format) {
    assertThat(refusal(manifest -> manifest.put("format", format)).code()).isEqualTo(Code.FORMAT);
  }

  @Test
  void unknownFieldsAreRefusedWhereverTheyAre() {
    assertThat(refusal(manifest -> manifest.put("cluster", 2)).code())
        .isEqualTo(Code.UNKNOWN_FIELD);
    assertThat(kernelRefusal(kernel -> kernel.put("cluster", 2)).line())
        .contains("kernel kernel-0: field cluster");
    assertThat(kernelRefusal(kernel -> ((ObjectNode) kernel.get("select")).put("window", 8)).code())
        .isEqualTo(Code.UNKNOWN_FIELD);
    assertThat(
            kernelRefusal(
                    kernel ->
                        ((ObjectNode) kernel.get("arguments").get(0)).put("by_reference", true))
                .code())
        .isEqualTo(Code.UNKNOWN_FIELD);
  }

  @Test
  void absentAndWrongFieldsAreRefused() {
    assertThat(kernelRefusal(kernel -> kernel.remove("symbol")).line()).contains("no field symbol");
    assertThat(kernelRefusal(kernel -> kernel.put("num_warps", 0)).line()).contains("num_warps");
    assertThat(kernelRefusal(kernel -> kernel.put("sha256", "12")).line()).contains("sha256");
    assertThat(kernelRefusal(kernel -> kernel.put("file", "../kernel")).line()).contains("file");
    assertThat(kernelRefusal(kernel -> ((ObjectNode) kernel.get("grid")).put("x", "warps")).line())
        .contains("grid.x: warps");
    assertThat(
            kernelRefusal(kernel -> ((ObjectNode) kernel.get("select")).put("dtype", "fp64"))
                .line())
        .contains("fp64");
  }

  @Test
  void textThatIsNoManifestIsRefused() {
    SyntheticPack pack = pack();
    pack.write();
    pack.write(PackManifest.FILE, "{\"format\": 1,".getBytes(StandardCharsets.UTF_8));

    assertThat(open(packs).getError().code()).isEqualTo(Code.MALFORMED);
  }

  @Test
  void binaryIsReadWhenItIsTheOneThatWasBuilt() {
    KernelPack pack = open(pack().write()).get();

    byte[] binary = pack.binary(pack.find(DECODE).get()).get();

    assertThat(new String(binary, StandardCharsets.UTF_8)).startsWith("fake kernels");
  }

  @Test
  void truncatedBinaryIsRefused() {
    SyntheticPack synthetic = pack();
    KernelPack pack = open(synthetic.write()).get();
    synthetic.write("kernel-0.cubin", "binary".getBytes(StandardCharsets.UTF_8));

    PackRefusal refusal = pack.binary(pack.find(DECODE).get()).getError();

    assertThat(refusal.code()).isEqualTo(Code.HASH);
    assertThat(refusal.line()).contains("6 bytes, no binary").contains("cut off or changed");
  }

  @Test
  void missingBinaryIsRefused() {
    KernelPack pack =
        open(pack().changedKernel(kernel -> kernel.put("file", "gone.cubin")).write()).get();

    assertThat(pack.binary(pack.find(DECODE).get()).getError().code()).isEqualTo(Code.FILE_MISSING);
  }
}

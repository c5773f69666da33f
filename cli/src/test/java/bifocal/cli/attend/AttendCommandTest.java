package bifocal.cli.attend;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import bifocal.cli.Main;
import bifocal.cli.backend.BackendCatalog;
import bifocal.cli.backend.MeasuredTable;
import bifocal.cli.command.CommandRun;
import bifocal.cli.command.CommandRunner;
import bifocal.cli.command.Installed;
import bifocal.composite.guice.AttentionBackends;
import bifocal.conformance.fake.CallLog;
import bifocal.conformance.fake.FakeBackend;
import bifocal.conformance.fake.FakeKernel;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.Platform;
import bifocal.core.safetensors.Safetensors;
import bifocal.core.tensor.DType;
import bifocal.core.tensor.TensorView;
import bifocal.reference.HostTensor;
import bifocal.reference.ReferenceBackend;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.vavr.collection.TreeMap;
import io.vavr.collection.Vector;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import picocli.CommandLine;

/** {@code bifocal attend} from file to file. */
class AttendCommandTest {
  private final Arena arena = Arena.ofShared();
  @TempDir private Path folder;

  @BeforeAll
  static void needsKernels() {
    Installed.require(Platform.CPU);
  }

  @AfterEach
  void release() {
    arena.close();
  }

  @Test
  void softcapOfFiftyWeighsLogitsOf200And100() {
    TensorView out = out(CaseFile.logits(arena, 200, 100).text("softcap", "50"));
    assertThat(at(out, 0)).isCloseTo(0.8538f, within(5e-5f));
    assertThat(at(out, 1)).isCloseTo(0.1462f, within(5e-5f));
  }

  @Test
  void withoutTheCapTheLargerLogitTakesAll() {
    assertThat(at(out(CaseFile.logits(arena, 200, 100)), 0)).isEqualTo(1f);
  }

  @Test
  void sinkOfZeroLeavesAThirdToEachOfTwoKeys() {
    CaseFile file = CaseFile.logits(arena, 0, 0).floats("sinks", DType.FP32, new float[] {0}, 1);
    assertThat(attend(file, "--lse", "--check").status()).isZero();
    assertThat(at(tensor("out"), 0)).isCloseTo(1 / 3f, within(1e-6f));
    assertThat(at(tensor("out"), 1)).isCloseTo(1 / 3f, within(1e-6f));
    assertThat(HostTensor.over(tensor("lse")).at(0, 0))
        .isCloseTo((float) Math.log(3), within(1e-6f));
  }

  @Test
  void maskedFirstTileAndLowLogitsAreAnOrdinarySoftmax() {
    float[] logits = new float[514];
    Arrays.fill(logits, 0, 512, 90);
    logits[512] = -300;
    logits[513] = -300;
    TensorView out = out(CaseFile.logits(arena, logits).text("sliding_window", "2"));
    assertThat(at(out, 1)).isCloseTo(512.5f, within(1e-3f));
  }

  @ParameterizedTest
  @ValueSource(floats = {-300, -245_000, -1e30f})
  void equalLogitsWeighTheSameHoweverLow(float level) {
    TensorView out = out(CaseFile.logits(arena, level, level));
    assertThat(at(out, 0)).isCloseTo(0.5f, within(1e-6f));
  }

  @Test
  void outputHasTheShapeOfQueriesInFp32() {
    out(CaseFile.random(arena, 1, DType.BF16, 4, 2, 64, 5, 9, 1, 33));
    TensorView out = tensor("out");
    assertThat(out.dtype()).isEqualTo(DType.FP32);
    assertThat(out.shape()).containsExactly(6, 4, 64);
    assertThat(file().tensors().containsKey("lse")).isFalse();
  }

  @Test
  void logSumExpIsWrittenOnlyWhenAsked() {
    attend(CaseFile.random(arena, 1, DType.BF16, 4, 2, 64, 5, 9, 1, 33), "--lse");
    assertThat(tensor("lse").shape()).containsExactly(6, 4);
    assertThat(tensor("lse").dtype()).isEqualTo(DType.FP32);
  }

  @ParameterizedTest
  @CsvSource({
    "FP32, 8, 2, 64, FLEX_CPU_ATTN",
    "FP32, 6, 2, 96, CPU_ATTN",
    "FP32, 5, 1, 80, FLEX_ATTENTION",
    "FP16, 7, 1, 128, FLEX_CPU_ATTN",
    "FP16, 12, 1, 32, CPU_ATTN",
    "BF16, 64, 1, 64, FLEX_CPU_ATTN",
    "BF16, 3, 3, 512, FLEX_CPU_ATTN",
    "BF16, 16, 8, 256, cpu_attn+flex_attention",
  })
  void randomBatchesAgreeWithTheReference(
      DType dtype, int heads, int kvHeads, int size, String backend) {
    long seed = Long.getLong("bifocal.seed", 1);
    CommandRun run =
        attend(
            CaseFile.random(
                arena, seed, dtype, heads, kvHeads, size, 17, 17, 1, 40, 0, 3, 5, 33, 1, 1),
            "--check",
            "--backend",
            backend);
    assertThat(run.status()).as("seed %d: %s%s", seed, run.out(), run.err()).isZero();
    assertThat(run.out()).contains("check passed: " + 24 * heads);
  }

  @ParameterizedTest
  @CsvSource({
    "override, --split, SPLIT",
    "clamp_past, --split, SPLIT",
    "clamp_both, --split, SPLIT",
    "override, --no-split, A",
    "clamp_past, --lowering, LOWERED",
    "clamp_both, --lowering, LOWERED",
    "none, --split, B",
  })
  void imagesAreRoutedAndAgreeWithTheReference(String mask, String option, String route) {
    CaseFile file =
        CaseFile.random(arena, 7, DType.FP32, 4, 2, 64, 30, 30, 1, 25, 20, 40)
            .text("mask", mask)
            .text("sliding_window", "12")
            .images(0, 4, 9, 0, 10, 25, 1, 3, 20, 2, 22, 39);
    JsonNode report = json(attend(file, "--check", option, "--format", "json"));
    assertThat(report.at("/route/route").asText()).as(report.toString()).isEqualTo(route);
    assertThat(report.at("/check/passed").asBoolean()).isTrue();
    assertThat(report.at("/check/error").asDouble()).isBetween(0.0, 4e-6);
    assertThat(report.at("/check/compared").asInt()).isEqualTo(51 * 4);
  }

  @Test
  void everyWindowSoftcapAlibiAndSinkTogether() {
    CaseFile file =
        CaseFile.random(arena, 3, DType.FP32, 4, 2, 64, 30, 50, 1, 70)
            .text("sliding_window", "9")
            .text("softcap", "3.5")
            .text("scale", "0.3")
            .text("block_size", "32")
            .floats("sinks", DType.FP32, new float[] {0.5f, -1, 2, 0}, 4)
            .floats("alibi_slopes", DType.FP32, new float[] {0.5f, 0.25f, 0.125f, 0.0625f}, 4);
    CommandRun run = attend(file, "--check", "--lse");
    assertThat(run.status()).as(run.out() + run.err()).isZero();
    assertThat(run.out()).contains("blocks of 32");
  }

  @Test
  void nothingSaidMeansNotCausal() {
    CaseFile file = CaseFile.random(arena, 3, DType.FP32, 2, 1, 64, 6, 6).without("causal");
    assertThat(attend(file, "--check").status()).isZero();
    float first = HostTensor.over(tensor("out")).at(0, 0, 0);
    attend(file.text("causal", "true"), "--check");
    assertThat(HostTensor.over(tensor("out")).at(0, 0, 0)).isNotEqualTo(first);
  }

  @ParameterizedTest
  @CsvSource({
    "fp8_e4m3, 0.02, 0.03",
    "fp8_e4m3, , ",
    "fp8, 0.02, 0.03",
    "fp8_e5m2, 1, 1",
    "fp8_e5m2, 0.5, 2",
    "int8_per_token_head, , ",
    "fp8_per_token_head, , "
  })
  void quantisedCachesAgreeWithWhatTheyKeep(String dtype, String k, String v) {
    CaseFile file =
        CaseFile.random(arena, 3, DType.BF16, 4, 2, 64, 9, 40).text("kv_cache_dtype", dtype);
    if (k != null) {
      file.text("k_scale", k).text("v_scale", v);
    }
    CommandRun run = attend(file, "--check");
    assertThat(run.status()).as(run.out() + run.err()).isZero();
    assertThat(run.out()).contains(dtype);
  }

  /** A cache that keeps its own scales, or none, takes no others. */
  @ParameterizedTest
  @CsvSource({"int8_per_token_head", "fp8_per_token_head"})
  void scalesForACacheThatKeepsItsOwnAreRefused(String dtype) {
    refused(
        CaseFile.random(arena, 3, DType.BF16, 4, 2, 64, 9, 40)
            .text("kv_cache_dtype", dtype)
            .text("k_scale", "0.5"),
        "INVALID_SELECTION",
        "KV scales given for a cache that keeps its own");
  }

  @Test
  void emptyBatchesAreRun() {
    CommandRun run =
        attend(CaseFile.random(arena, 3, DType.FP32, 4, 2, 64, 0, 0, 0, 12), "--check", "--lse");
    assertThat(run.status()).as(run.out() + run.err()).isZero();
    assertThat(tensor("out").shape()).containsExactly(0, 4, 64);
    CaseFile none = CaseFile.random(arena, 3, DType.FP32, 4, 2, 64);
    CommandRun nobody = attend(none, "--check");
    assertThat(nobody.status()).as(nobody.out() + nobody.err()).isZero();
  }

  @Test
  void reportNamesRouteBackendAndTime() {
    CommandRun run = attend(CaseFile.random(arena, 3, DType.BF16, 4, 2, 64, 9, 40, 1, 3));
    assertThat(run.out())
        .contains("backend FLEX_CPU_ATTN on cpu")
        .containsPattern("(?m)^kernels .*(native|vector|scalar)")
        .containsPattern("(?m)^threads [1-9]")
        .contains("route B, graph eager")
        .contains("NO_IMAGE_QUERY")
        .containsPattern("time [0-9.]+ ms, first run");
  }

  @ParameterizedTest
  @CsvSource({
    "scael, 1, INVALID_OPTION, scale",
    "scale, NaN, NOT_FINITE, scale",
    "scale, inf, NOT_FINITE, scale",
    "scale, 1e999, NOT_FINITE, scale",
    "scale, one, MALFORMED_INPUT, scale",
    "scale, '', MALFORMED_INPUT, scale",
    "causal, True, MALFORMED_INPUT, causal",
    "sliding_window, 0, INVALID_PARAMETER, sliding_window",
    "sliding_window, -4, INVALID_PARAMETER, sliding_window",
    "sliding_window, 4.0, MALFORMED_INPUT, sliding_window",
    "sliding_window, 3000000000, OVERFLOW, sliding_window",
    "mask, overide, INVALID_OPTION, override",
    "softcap, 0, INVALID_PARAMETER, softcap",
    "softcap, -1, INVALID_PARAMETER, softcap",
    "softcap, nan, NOT_FINITE, softcap",
    "softcap, 1e-300, INVALID_PARAMETER, softcap",
    "softcap, 1e300, INVALID_PARAMETER, softcap",
    "scale, 1e300, INVALID_PARAMETER, scale",
    "kv_cache_dtype, fp8_e4m4, INVALID_OPTION, fp8_e4m3",
    "kv_cache_dtype, nvfp4, INVALID_SELECTION, kv_cache_dtype",
    "k_scale, 0, INVALID_PARAMETER, scale",
    "k_scale, nan, NOT_FINITE, scale",
    "block_size, 0, INVALID_PARAMETER, block_size",
    "block_size, 7, INVALID_SELECTION, block_size",
  })
  void wrongTextsAreRefused(String key, String text, String code, String named) {
    refused(CaseFile.random(arena, 1, DType.BF16, 4, 2, 64, 5, 9).text(key, text), code, named);
  }

  /** A block table of 250 GB: a million requests without keys beside one of a million. */
  @Test
  void caseThatNeedsMoreMemoryThanThereIsIsRefused() {
    int[] lens = new int[2 * 1_000_001];
    lens[0] = 1;
    lens[1] = 1_000_000;
    refused(
        CaseFile.random(arena, 1, DType.FP32, 1, 1, 2, lens), "MEMORY_TOO_SMALL", "more memory");
  }

  @Test
  void maskNeedsCausal() {
    refused(
        CaseFile.random(arena, 1, DType.BF16, 4, 2, 64, 5, 9)
            .text("mask", "override")
            .text("causal", "false"),
        "INVALID_PARAMETER",
        "causal=true");
  }

  @ParameterizedTest
  @CsvSource({
    "'0,5,20', IMAGE_CUT",
    "'0,5,4', IMAGE_REVERSED",
    "'0,0,4,0,4,6', IMAGE_OVERLAP",
    "'0,30,40,0,35,50', IMAGE_OVERLAP",
    "'0,-1,4', NEGATIVE",
    "'7,0,4', INVALID_PARAMETER",
    "'-1,0,4', INVALID_PARAMETER",
  })
  void wrongImagesAreRefused(String triples, String code) {
    int[] numbers = Stream.of(triples.split(",")).mapToInt(Integer::parseInt).toArray();
    refused(
        CaseFile.random(arena, 1, DType.BF16, 4, 2, 64, 9, 9)
            .text("mask", "override")
            .images(numbers),
        code,
        "");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "(FLEX_ATTENTION+CPU_ATTN)+CPU_ATTN",
        "FLEX_ATTENTION+(FLEX_ATTENTION+CPU_ATTN)",
        "(FLEX_CPU_ATTN+CPU_ATTN)+(FLEX_ATTENTION+CPU_ATTN)",
      })
  void pairsInsidePairsAgreeWithTheReference(String backend) {
    CaseFile file =
        CaseFile.random(arena, 3, DType.BF16, 4, 2, 64, 12, 30, 20, 40)
            .text("mask", "override")
            .text("sliding_window", "8")
            .images(0, 4, 9, 0, 10, 25, 1, 3, 20, 1, 22, 39);

    CommandRun run = attend(file, "--backend=" + backend, "--check");

    assertThat(run.err()).isEmpty();
    assertThat(run.status()).isZero();
    assertThat(run.out()).contains(backend).contains("check passed");
  }

  @Test
  void imagesBeyondTheSequenceAndWithoutAMaskAreNotLookedAt() {
    CaseFile file = CaseFile.random(arena, 1, DType.BF16, 4, 2, 64, 9, 9);
    assertThat(attend(file.text("mask", "override").images(0, 9, 99)).status()).isZero();
    assertThat(attend(file.text("mask", "none").images(0, 5, 4)).status()).isZero();
  }

  @Test
  void wrongTensorsAreRefused() {
    refused(random().without("k"), "MALFORMED_INPUT", "'k'");
    refused(random().without("v"), "MALFORMED_INPUT", "'v'");
    refused(random().without("seq_lens"), "MALFORMED_INPUT", "'seq_lens'");
    refused(random().ints("sink", 1), "INVALID_OPTION", "sinks");
    refused(random().ints("query_lens", 6), "SHAPE_MISMATCH", "query_lens");
    refused(random().ints("seq_lens", 8), "SHAPE_MISMATCH", "seq_lens");
    refused(random().ints("seq_lens", 4, 5), "SHAPE_MISMATCH", "requests");
    refused(random().ints("seq_lens", 4), "QUERY_EXCEEDS_SEQ", "query_len 5");
    refused(random().ints("query_lens", -5), "NEGATIVE", "-5");
    refused(
        random().ints("query_lens", 1 << 30, 1 << 30).ints("seq_lens", 1 << 30, 1 << 30),
        "OVERFLOW",
        "sum");
    refused(
        random().floats("query_lens", DType.FP32, new float[] {5}, 1), "DTYPE_MISMATCH", "int32");
    refused(
        random().floats("v", DType.FP16, new float[9 * 128], 9, 2, 64), "DTYPE_MISMATCH", "bf16");
    refused(random().floats("k", DType.BF16, new float[9 * 96], 9, 2, 48), "SHAPE_MISMATCH", "k");
    refused(
        random().floats("k", DType.BF16, new float[9 * 192], 9, 3, 64),
        "INVALID_PARAMETER",
        "KV heads");
    refused(random().floats("v", DType.BF16, new float[8 * 128], 8, 2, 64), "SHAPE_MISMATCH", "v");
    refused(
        random().floats("q", DType.BF16, new float[1280], 20, 64),
        "SHAPE_MISMATCH",
        "3 dimensions");
    refused(random().ints("q", 1), "SHAPE_MISMATCH", "q");
    refused(random().floats("sinks", DType.FP32, new float[3], 3), "SHAPE_MISMATCH", "sinks");
    refused(random().floats("sinks", DType.BF16, new float[4], 4), "DTYPE_MISMATCH", "sinks");
    refused(
        random().floats("alibi_slopes", DType.FP32, new float[] {1, 1, Float.NaN, 1}, 4),
        "NOT_FINITE",
        "alibi_slopes of head 2");
  }

  private CaseFile random() {
    return CaseFile.random(arena, 1, DType.BF16, 4, 2, 64, 5, 9);
  }

  @Test
  void latentAttentionIsNotExecutable() {
    Random random = new Random(1);
    refused(
        random()
            .without("v")
            .floats("q", DType.BF16, CaseFile.normal(random, 5 * 4 * 576), 5, 4, 576)
            .floats("k", DType.BF16, CaseFile.normal(random, 9 * 576), 9, 1, 576),
        "MLA_NOT_EXECUTABLE",
        "latent");
  }

  @Test
  void backendThatCannotDoTheCaseIsRefusedWithItsReasons() {
    CommandRun run =
        attend(
            random().text("mask", "override").images(0, 1, 3),
            "--backend",
            "CPU_ATTN",
            "--format",
            "json");
    assertThat(run.status()).isEqualTo(2);
    JsonNode error = json(run).get("error");
    assertThat(error.get("code").asText()).isEqualTo("INVALID_SELECTION");
    assertThat(error.get("message").asText())
        .startsWith("Selected backend CPU_ATTN is not valid for this configuration. Reason: [")
        .contains("partial multimodal token full attention not supported");
  }

  @ParameterizedTest
  @CsvSource({
    "--backend, CPU_ATN, UNKNOWN_BACKEND, CPU_ATTN",
    "--backend, CPU_ATTN+FLEX_ATTENTIN, UNKNOWN_BACKEND, FLEX_ATTENTION",
    "--policy, mm-prefx, INVALID_OPTION, mm-prefix",
    "--platform, cuda, NATIVE_MISSING, cuda",
    "--platform, cdua, INVALID_OPTION, cdua",
    "--bakend, CPU_ATTN, INVALID_OPTION, --backend",
  })
  void wrongOptionsAreRefused(String option, String value, String code, String named) {
    CommandRun run = attend(random(), option, value, "--format", "json");
    assertThat(run.status()).isEqualTo(2);
    assertThat(json(run).at("/error/code").asText()).isEqualTo(code);
    assertThat(json(run).at("/error/message").asText()).contains(named);
  }

  @Test
  void imageRefusalsNameTheirRequest() {
    CommandRun run =
        attend(
            CaseFile.random(arena, 1, DType.BF16, 4, 2, 64, 9, 9, 9, 9)
                .text("mask", "override")
                .images(1, 5, 20),
            "--format",
            "json");
    assertThat(json(run).at("/error/code").asText()).isEqualTo("IMAGE_CUT");
    assertThat(json(run).at("/error/request").asInt()).isEqualTo(1);
  }

  @Test
  void truncatedFileIsRefusedInOneLine() throws IOException {
    random().write(folder.resolve("in.safetensors"));
    byte[] whole = Files.readAllBytes(folder.resolve("in.safetensors"));
    Files.write(folder.resolve("in.safetensors"), Arrays.copyOf(whole, whole.length - 1));
    CommandRun run = attend();
    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err().lines()).hasSize(1);
    assertThat(run.err()).contains("beyond the file");
    assertThat(folder.resolve("out.safetensors")).doesNotExist();
  }

  @Test
  void refusalLeavesAnOldOutputAsItWas() throws IOException {
    Files.writeString(folder.resolve("out.safetensors"), "before");
    refused(random().text("scale", "NaN"), "NOT_FINITE", "");
    assertThat(folder.resolve("out.safetensors")).hasContent("before");
  }

  @Test
  void outputInAMissingFolderIsRefusedBeforeAnythingIsRead() {
    CommandRun run =
        CommandRun.of(
            "",
            console ->
                Main.run(
                    console,
                    "attend",
                    "--in",
                    folder.resolve("none").toString(),
                    "--out",
                    folder.resolve("no").resolve("out").toString()));
    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("nothing can be written");
  }

  @Test
  void outputPastTheBoundFailsTheCheckAndIsWrittenAllTheSame() {
    random().write(folder.resolve("in.safetensors"));
    FakeBackend wrong =
        FakeBackend.of(
                "WRONG", new CallLog(), ReferenceBackend.over(KvLayouts.NHD).capabilities().all())
            .withKernel(FakeKernel.marking(7));
    BackendCatalog catalog =
        BackendCatalog.of(new AttentionBackends(TreeMap.of(wrong.name(), wrong)));
    CommandRun run =
        CommandRun.of(
            "",
            console ->
                new CommandRunner(
                        new CommandLine(new AttendCommand(console, () -> catalog)), console)
                    .run(
                        "--in=" + folder.resolve("in.safetensors"),
                        "--out=" + folder.resolve("out.safetensors"),
                        "--backend=wrong",
                        "--check"));
    assertThat(run.status()).isEqualTo(1);
    assertThat(run.out())
        .contains("check FAILED")
        .contains("route none")
        .containsPattern("worst error +[0-9.e+-]+ at query token [0-9]+, head [0-9]+");
    assertThat(at(tensor("out"), 0)).isEqualTo(7f);
  }

  @Test
  void measuredTimesChooseBetweenTheChildrenOfAPair() {
    CaseFile file =
        CaseFile.random(arena, 5, DType.FP32, 4, 2, 64, 40, 40, 40, 40)
            .text("mask", "clamp_past")
            .images(0, 4, 9);
    Path table = MeasuredTable.write(folder, 1, 9, DType.FP32, 64);

    CommandRun run = attend(file, "--check", "--calibration=" + table);

    assertThat(run.status()).as(run.out() + run.err()).isZero();
    assertThat(run.out()).contains("MEASURED").contains("routing measured: " + table);
    assertThat(attend(file, "--check").out()).doesNotContain("MEASURED");
  }

  @ParameterizedTest
  @ValueSource(strings = {"--policy=child-a", "--no-split", "--lowering"})
  void aChoiceThatIsNamedIsNotOverruled(String option) {
    Path table = MeasuredTable.write(folder, 1, 9, DType.FP32, 64);

    CommandRun run =
        attend(
            CaseFile.random(arena, 5, DType.FP32, 4, 2, 64, 4, 4),
            option,
            "--calibration=" + table);

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("--calibration beside --");
  }

  @Test
  void timesOfOneBackendAreNoChoice() {
    Path table = MeasuredTable.write(folder, 1, 9, DType.FP32, 64);

    CommandRun run =
        attend(
            CaseFile.random(arena, 5, DType.FP32, 4, 2, 64, 4, 4),
            "--backend=CPU_ATTN",
            "--calibration=" + table);

    assertThat(run.status()).isEqualTo(2);
    assertThat(run.err()).contains("--calibration of CPU_ATTN");
  }

  private TensorView out(CaseFile file) {
    CommandRun run = attend(file, "--check");
    assertThat(run.status()).as(run.out() + run.err()).isZero();
    return tensor("out");
  }

  private void refused(CaseFile file, String code, String named) {
    CommandRun run = attend(file, "--check", "--format", "json");
    assertThat(run.status()).as(run.out() + run.err()).isEqualTo(2);
    JsonNode error = json(run).get("error");
    assertThat(error.get("code").asText()).as(run.out()).isEqualTo(code);
    assertThat(error.get("message").asText()).contains(named);
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files.map(path -> path.getFileName().toString()))
          .as("files after a refusal")
          .isSubsetOf("in.safetensors", "out.safetensors");
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private CommandRun attend(CaseFile file, String... options) {
    file.write(folder.resolve("in.safetensors"));
    return attend(options);
  }

  private CommandRun attend(String... options) {
    String[] arguments =
        Vector.of(
                "attend",
                "--in=" + folder.resolve("in.safetensors"),
                "--out=" + folder.resolve("out.safetensors"))
            .appendAll(Vector.of(options))
            .toJavaArray(String[]::new);
    return CommandRun.of("", console -> Main.run(console, arguments));
  }

  private Safetensors file() {
    return Safetensors.read(folder.resolve("out.safetensors"), arena);
  }

  private TensorView tensor(String name) {
    return file().tensors().get(name).get();
  }

  private static float at(TensorView out, int d) {
    return HostTensor.over(out).at(0, 0, d);
  }

  private static JsonNode json(CommandRun run) {
    try {
      return new ObjectMapper().readTree(run.out());
    } catch (IOException e) {
      throw new AssertionError(run.out() + run.err(), e);
    }
  }
}

package bifocal.cuda.flashinfer;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.driver.CudaDriver;
import bifocal.cuda.pack.PackRefusal;
import bifocal.cuda.triton.TritonHost;
import bifocal.tvm.Any;
import bifocal.tvm.TvmModule;
import bifocal.tvm.TvmRuntime;
import io.vavr.control.Validation;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.io.TempDir;
import org.opentest4j.TestAbortedException;

/** The suite on a GPU, and FlashInfer's own modules on a device without memory. */
@Tag("gpu")
@TestInstance(Lifecycle.PER_CLASS)
class DeviceModuleGpuTest implements DeviceModuleSuite {
  private static final Path PACKS = Path.of(System.getProperty(TritonHost.PROPERTY, "no-packs"));

  private CudaContext context;
  private TvmModule module;

  @BeforeAll
  void open(@TempDir Path folder) {
    context = CudaContext.primary(CudaDriver.load(), 0);
    Validation<PackRefusal, Path> runtime =
        FlashInferPack.open(PACKS, context.device().capability())
            .flatMap(pack -> pack.runtimeFile("libtvm_ffi.so"));
    if (runtime.isInvalid()) {
      context.close();
      throw new TestAbortedException(runtime.getError().line());
    }
    module = DeviceModule.compiled(folder, TvmRuntime.load(runtime.get()));
    assertThat(module.function("open").invoke(new Any.Text("libcuda.so.1")))
        .isEqualTo(new Any.Int(1));
  }

  @AfterAll
  void close() {
    context.close();
  }

  @Override
  public CudaContext context() {
    return context;
  }

  @Override
  public TvmModule module() {
    return module;
  }

  @Override
  public byte[] kernel() {
    return RowKernels.Source.OWN.code();
  }

  @Override
  public long least() {
    return 1 << 12;
  }

  @Test
  void modulesThatFindNoMemoryForTheirKernelsWorkWhenThereIsSome()
      throws IOException, InterruptedException {
    Process program =
        new ProcessBuilder(
                List.of(
                    Path.of(System.getProperty("java.home", ""), "bin", "java").toString(),
                    "--enable-native-access=ALL-UNNAMED",
                    "-cp",
                    System.getProperty("java.class.path", ""),
                    FullDeviceProgram.class.getName(),
                    PACKS.toString()))
            .redirectErrorStream(true)
            .start();
    String said = new String(program.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    System.out.println(said);

    assertThat(program.waitFor()).as(said).isZero();
    assertThat(said.lines())
        .as(said)
        .contains("free 256 no error", "free 128 no error")
        .contains("again 256 no error", "again 128 no error", "closed")
        .anySatisfy(
            line -> assertThat(line).contains("full 256 NATIVE_FAILED").contains("out of memory"))
        .anySatisfy(line -> assertThat(line).contains("full 128 DEVICE_MEMORY_EXHAUSTED"));
  }
}

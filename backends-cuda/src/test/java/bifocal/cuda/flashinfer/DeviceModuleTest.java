package bifocal.cuda.flashinfer;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.fake.FakeCuda;
import bifocal.tvm.Any;
import bifocal.tvm.TvmModule;
import bifocal.tvm.TvmRuntime;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.io.TempDir;

/** The suite over the stand-in for the driver. */
@TestInstance(Lifecycle.PER_CLASS)
class DeviceModuleTest implements DeviceModuleSuite {
  private CudaContext context;
  private TvmModule module;

  @BeforeAll
  void open(@TempDir Path folder) {
    FakeCuda fake = FakeCuda.resetOrSkip();
    fake.devices(1, 9, 0, 64L << 20);
    context = CudaContext.primary(fake.driver(), 0);
    module = DeviceModule.compiled(folder, TvmRuntime.load(FakeModules.runtimeOrSkip()));
    assertThat(module.function("open").invoke(new Any.Text(fake.file().toString())))
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
    return FlashInferEmulatedTest.rowKernels();
  }

  @Override
  public long least() {
    return 1 << 10;
  }
}

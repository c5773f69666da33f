package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.tensor.DType;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.Specialisation;
import bifocal.cuda.pack.Specialisation.Variant;
import bifocal.cuda.pack.SyntheticPack;
import bifocal.cuda.triton.TritonContract.Kind;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Nested;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.io.TempDir;

/**
 * The contract of every backend over the stand-in for the driver, with emulated kernels, for a
 * pair: it makes each child do its part.
 */
@TestInstance(Lifecycle.PER_CLASS)
class TritonContractTest extends TritonBackendContract {
  private CudaContext context;
  private TritonDevice device;
  private EmulatedKernels kernels;
  private FakeCuda fake;

  @BeforeAll
  void open(@TempDir Path packs) {
    fake = FakeCuda.resetOrSkip();
    fake.devices(1, 9, 0, 8L << 30);
    context = CudaContext.primary(fake.driver(), 0);
    KernelPack pack = KernelPack.open(pack(packs), context.device().capability()).get();
    device = TritonDevice.of(context, pack);
    kernels = EmulatedKernels.over(fake, pack);
  }

  @AfterAll
  void close() {
    kernels.close();
    device.close();
    context.close();
    kernels.requireFine();
    assertThat(fake.live().toJavaMap()).isEmpty();
  }

  @Override
  TritonDevice device() {
    return device;
  }

  private static Path pack(Path packs) {
    SyntheticPack pack = SyntheticPack.in(packs);
    CacheFormat e4m3 = new CacheFormat(CacheFormat.Numbers.E4M3, false);
    CacheFormat int8 = new CacheFormat(CacheFormat.Numbers.INT8, true);
    for (Variant variant : Variant.values()) {
      for (DType dtype : new DType[] {DType.FP32, DType.BF16, DType.FP16}) {
        TritonEmulatedTest.add(
            pack, variant, dtype, CacheFormat.SAME, 64, 2, 16, false, false, false);
        TritonEmulatedTest.add(
            pack, variant, dtype, CacheFormat.SAME, 64, 1, 16, false, false, false);
      }
      for (boolean softcap : new boolean[] {false, true}) {
        for (boolean alibi : new boolean[] {false, true}) {
          if (softcap || alibi) {
            TritonEmulatedTest.add(
                pack, variant, DType.FP32, CacheFormat.SAME, 64, 2, 16, softcap, alibi, false);
          }
        }
      }
      TritonEmulatedTest.add(pack, variant, DType.BF16, e4m3, 64, 2, 16, false, false, false);
      TritonEmulatedTest.add(pack, variant, DType.BF16, int8, 64, 2, 16, false, false, false);
    }
    for (DType dtype : new DType[] {DType.FP32, DType.BF16, DType.FP16}) {
      pack.with(new Specialisation.Merge(dtype, 64));
      pack.with(new Specialisation.Write(dtype, CacheFormat.SAME, 64));
    }
    widened(pack);
    return pack.with(new Specialisation.Write(DType.BF16, e4m3, 64))
        .with(new Specialisation.Write(DType.BF16, int8, 64))
        .write();
  }

  /** Kernels into fp32 for bf16 alone, so that fp16 shows what is said without them. */
  private static void widened(SyntheticPack pack) {
    for (Variant variant : Variant.values()) {
      Specialisation.Attention decode =
          new Specialisation.Attention(
                  Specialisation.Phase.DECODE,
                  Specialisation.Engine.PORTABLE,
                  variant,
                  DType.BF16,
                  CacheFormat.SAME,
                  64,
                  2,
                  16,
                  false,
                  false)
              .widened();
      pack.with(decode).with(decode.in(Specialisation.Phase.PREFILL));
    }
    pack.with(new Specialisation.Merge(DType.BF16, 64, true));
  }

  @Nested
  final class Pair extends Contract {
    @Override
    Kind kind() {
      return Kind.LOWERED;
    }
  }
}

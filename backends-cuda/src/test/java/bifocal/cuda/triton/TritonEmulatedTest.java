package bifocal.cuda.triton;

import static org.assertj.core.api.Assertions.assertThat;

import bifocal.core.tensor.DType;
import bifocal.cuda.driver.CudaContext;
import bifocal.cuda.fake.FakeCuda;
import bifocal.cuda.pack.CacheFormat;
import bifocal.cuda.pack.CacheFormat.Numbers;
import bifocal.cuda.pack.KernelPack;
import bifocal.cuda.pack.Specialisation;
import bifocal.cuda.pack.Specialisation.Attention;
import bifocal.cuda.pack.Specialisation.Engine;
import bifocal.cuda.pack.Specialisation.Phase;
import bifocal.cuda.pack.Specialisation.Variant;
import bifocal.cuda.pack.SyntheticPack;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.file.Path;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.io.TempDir;

/** The suite over the stand-in for the driver: every byte that Java hands to kernels is used. */
@TestInstance(Lifecycle.PER_CLASS)
class TritonEmulatedTest implements TritonSuite, TritonStepSuite {
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

  static Path pack(Path packs) {
    SyntheticPack pack = SyntheticPack.in(packs);
    for (Variant variant : Variant.values()) {
      add(pack, variant, DType.BF16, CacheFormat.SAME, 32, 2, 16, false, false, true);
      add(pack, variant, DType.FP16, CacheFormat.SAME, 32, 4, 32, true, false, false);
      add(pack, variant, DType.FP32, CacheFormat.SAME, 32, 1, 16, false, true, false);
      for (CacheFormat cache :
          new CacheFormat[] {
            new CacheFormat(Numbers.E4M3, false),
            new CacheFormat(Numbers.E5M2, false),
            new CacheFormat(Numbers.E4M3, true),
            new CacheFormat(Numbers.INT8, true)
          }) {
        add(pack, variant, DType.BF16, cache, 32, 3, 16, false, false, false);
        if (variant == Variant.CAUSAL) {
          pack.with(new Specialisation.Write(DType.BF16, cache, 32));
        }
      }
    }
    for (DType dtype : new DType[] {DType.BF16, DType.FP16, DType.FP32}) {
      pack.with(new Specialisation.Write(dtype, CacheFormat.SAME, 32));
      pack.with(new Specialisation.Merge(dtype, 32));
    }
    return pack.write();
  }

  /** The one shape of {@link #packForDecodes}. */
  static final Attention DECODE =
      new Attention(
          Phase.DECODE,
          Engine.PORTABLE,
          Variant.CAUSAL,
          DType.BF16,
          CacheFormat.SAME,
          32,
          2,
          16,
          false,
          false);

  /** A pack for a host that only decodes. */
  static Path packForDecodes(Path packs) {
    return SyntheticPack.in(packs)
        .with(DECODE)
        .with(new Specialisation.Write(DType.BF16, CacheFormat.SAME, 32))
        .with(new Specialisation.Merge(DType.BF16, 32))
        .write();
  }

  /** A pack of which one kernel's first parameter lies elsewhere in the binary. */
  static Path packWithShiftedParameter(Path packs) {
    SyntheticPack pack = SyntheticPack.in(packs);
    add(pack, Variant.CAUSAL, DType.BF16, CacheFormat.SAME, 32, 2, 16, false, false, false);
    add(pack, Variant.GENERAL, DType.BF16, CacheFormat.SAME, 32, 2, 16, false, false, false);
    pack.with(new Specialisation.Write(DType.BF16, CacheFormat.SAME, 32));
    pack.with(new Specialisation.Merge(DType.BF16, 32));
    return pack.changedKernel(
            kernel -> ((ObjectNode) kernel.get("arguments").get(0)).put("offset", 4))
        .write();
  }

  static void add(
      SyntheticPack pack,
      Variant variant,
      DType dtype,
      CacheFormat cache,
      int headSize,
      int group,
      int blockSize,
      boolean softcap,
      boolean alibi,
      boolean hopper) {
    Attention decode =
        new Attention(
            Phase.DECODE,
            Engine.PORTABLE,
            variant,
            dtype,
            cache,
            headSize,
            group,
            blockSize,
            softcap,
            alibi);
    pack.with(decode).with(decode.in(Phase.PREFILL));
    if (hopper) {
      pack.with(decode.in(Phase.PREFILL).by(Engine.HOPPER));
    }
  }

  @Override
  public TritonDevice device() {
    return device;
  }

  @Override
  public int repetitions() {
    return 1;
  }

  @Override
  public long seed() {
    return 20_261_129;
  }

  @Override
  public int longest() {
    return 530;
  }

  /** Host memory stands in for the device's. */
  @Override
  public long elementsOfLargeCache() {
    return 0;
  }
}

package bifocal.cpu.contract;

import bifocal.composite.CompositeBackends;
import bifocal.conformance.KvCachePairContract;
import bifocal.core.backend.AttentionBackend;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.cpu.attention.KernelChoice;
import bifocal.cpu.cache.CpuPackedLayout;
import bifocal.cpu.kernel.CpuKernels;
import bifocal.cpu.thread.CpuThreads;
import bifocal.reference.ReferenceBackend;
import bifocal.routing.MMPrefixAttentionRouting;
import org.junit.jupiter.api.Nested;

/** C11: whoever writes the cache, whoever reads it, in every type both children declare. */
final class CpuPairsTest {
  private static CpuRuntime runtime(CpuKernels kernels) {
    return new CpuRuntime(kernels, CpuThreads.shared());
  }

  /** The two children of the composite. */
  @Nested
  final class Children extends KvCachePairContract {
    @Override
    public AttentionBackend<?> backend() {
      return new FlexAttentionBackend(runtime(BuiltKernels.orSkip()));
    }

    @Override
    public AttentionBackend<?> other() {
      return new CpuAttnBackend(runtime(BuiltKernels.orSkip()));
    }
  }

  /** The composite, and its fast child alone. */
  @Nested
  final class CompositeAndChild extends KvCachePairContract {
    @Override
    public AttentionBackend<?> backend() {
      CpuRuntime runtime = CpuRuntime.ofThisJvm();
      return CompositeBackends.createCompositeBackendOrThrow(
          new FlexAttentionBackend(runtime),
          new CpuAttnBackend(runtime),
          new MMPrefixAttentionRouting());
    }

    @Override
    public AttentionBackend<?> other() {
      return new CpuAttnBackend(CpuRuntime.ofThisJvm());
    }
  }

  /** The layout's own reader and writer, and the C kernels. */
  @Nested
  final class PlainAndNative extends KvCachePairContract {
    @Override
    public AttentionBackend<?> backend() {
      return ReferenceBackend.over(CpuPackedLayout.INSTANCE);
    }

    @Override
    public AttentionBackend<?> other() {
      return new CpuAttnBackend(runtime(BuiltKernels.orSkip()));
    }
  }

  /** The layout's own reader and writer, and the Java kernels. */
  @Nested
  final class PlainAndScalar extends KvCachePairContract {
    @Override
    public AttentionBackend<?> backend() {
      return ReferenceBackend.over(CpuPackedLayout.INSTANCE);
    }

    @Override
    public AttentionBackend<?> other() {
      return new CpuAttnBackend(runtime(KernelChoice.scalar()));
    }
  }

  /** Vectors of Java, and the C kernels. */
  @Nested
  final class VectorAndNative extends KvCachePairContract {
    @Override
    public AttentionBackend<?> backend() {
      return new FlexAttentionBackend(runtime(KernelChoice.vector()));
    }

    @Override
    public AttentionBackend<?> other() {
      return new CpuAttnBackend(runtime(BuiltKernels.orSkip()));
    }
  }
}

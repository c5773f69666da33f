package bifocal.cuda;

import static bifocal.composite.guice.AttentionBinder.backends;
import static bifocal.composite.guice.AttentionBinder.capabilityMajor;
import static bifocal.composite.guice.AttentionBinder.composites;
import static bifocal.composite.guice.AttentionBinder.platforms;

import bifocal.composite.guice.PlatformModule;
import bifocal.core.backend.BackendName;
import bifocal.core.device.Platform;
import bifocal.core.host.HostCheck;
import bifocal.cuda.flashattention.FlashAttentionBackend;
import bifocal.cuda.flashattention.ForwardHost;
import bifocal.cuda.flashinfer.FlashInferBackend;
import bifocal.cuda.flashinfer.FlashInferHost;
import bifocal.cuda.host.CudaHostCheck;
import bifocal.cuda.select.CudaBackends;
import bifocal.cuda.triton.KernelPackCheck;
import bifocal.cuda.triton.TritonAttnBackend;
import bifocal.cuda.triton.TritonCausalBackend;
import bifocal.cuda.triton.TritonHost;
import bifocal.routing.MMPrefixAttentionRouting;
import com.google.inject.AbstractModule;
import io.vavr.control.Option;

/** The backends of NVIDIA devices, their composites, and how the platform chooses. */
public final class CudaAttentionModule extends AbstractModule implements PlatformModule {
  /** Images on {@code TRITON_ATTN}, text on its causal child. */
  public static final BackendName TRITON_PAIR = BackendName.of("TRITON_PAIR");

  /** {@code TRITON_FLASHINFER} as it runs on 9.0, where the reference has none. */
  public static final BackendName TRITON_FLASHINFER_SM90 = BackendName.of("TRITON_FLASHINFER_SM90");

  private final TritonHost host;

  /** The platform with the device and kernel packs of this host, if there are any. */
  public CudaAttentionModule() {
    this(TritonHost.ofThisJvm());
  }

  /** The platform with the kernels of a host, which are looked for when they are first needed. */
  public CudaAttentionModule(TritonHost host) {
    this.host = host;
  }

  @Override
  public Platform platform() {
    return Platform.CUDA;
  }

  @Override
  public Option<HostCheck> hostCheck() {
    return Option.some(
        () -> CudaHostCheck.ofThisHost().findings().appendAll(KernelPackCheck.of(host).findings()));
  }

  @Override
  protected void configure() {
    CudaBackends.all()
        .forEach(backend -> backends(binder()).addBinding(backend.name()).toInstance(backend));
    backends(binder()).addBinding(TritonAttnBackend.NAME).toInstance(new TritonAttnBackend(host));
    backends(binder())
        .addBinding(TritonCausalBackend.NAME)
        .toInstance(new TritonCausalBackend(host));
    backends(binder())
        .addBinding(FlashInferBackend.NAME)
        .toInstance(new FlashInferBackend(FlashInferHost.beside(host)));
    backends(binder())
        .addBinding(FlashAttentionBackend.NAME)
        .toInstance(new FlashAttentionBackend(ForwardHost.beside(host)));
    composites(binder())
        .bind(TRITON_FLASHINFER_SM90)
        .of(TritonAttnBackend.NAME, FlashInferBackend.NAME)
        .routedBy(MMPrefixAttentionRouting.class)
        .onlyOn(capabilityMajor(9));
    composites(binder())
        .bind(TRITON_PAIR)
        .of(TritonAttnBackend.NAME, TritonCausalBackend.NAME)
        .routedBy(MMPrefixAttentionRouting.class);
    platforms(binder()).addBinding().toInstance(CudaBackends.policy(InstalledPackages::of));
    CudaBackends.bindComposites(composites(binder()));
  }
}

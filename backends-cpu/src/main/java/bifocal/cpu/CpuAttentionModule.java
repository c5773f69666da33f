package bifocal.cpu;

import static bifocal.composite.guice.AttentionBinder.backends;
import static bifocal.composite.guice.AttentionBinder.composites;
import static bifocal.composite.guice.AttentionBinder.platforms;

import bifocal.composite.guice.PlatformModule;
import bifocal.core.backend.BackendName;
import bifocal.core.device.Platform;
import bifocal.core.host.HostCheck;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.cpu.host.CpuHostCheck;
import bifocal.cpu.select.CpuLatent;
import bifocal.cpu.select.CpuPolicy;
import bifocal.routing.MMPrefixAttentionRouting;
import com.google.inject.AbstractModule;
import io.vavr.control.Option;

/** The backends of the host processor. */
public final class CpuAttentionModule extends AbstractModule implements PlatformModule {
  /** Images on {@code FLEX_ATTENTION}, text on {@code CPU_ATTN}. */
  public static final BackendName FLEX_CPU_ATTN = BackendName.of("FLEX_CPU_ATTN");

  @Override
  public Platform platform() {
    return Platform.CPU;
  }

  @Override
  public Option<HostCheck> hostCheck() {
    return Option.some(CpuHostCheck.ofThisHost());
  }

  @Override
  protected void configure() {
    CpuRuntime runtime = CpuRuntime.ofThisJvm();
    backends(binder()).addBinding(CpuAttnBackend.NAME).toInstance(new CpuAttnBackend(runtime));
    backends(binder())
        .addBinding(FlexAttentionBackend.NAME)
        .toInstance(new FlexAttentionBackend(runtime));
    CpuLatent.all()
        .forEach(backend -> backends(binder()).addBinding(backend.name()).toInstance(backend));
    composites(binder())
        .bind(FLEX_CPU_ATTN)
        .of(FlexAttentionBackend.NAME, CpuAttnBackend.NAME)
        .routedBy(MMPrefixAttentionRouting.class);
    platforms(binder()).addBinding().toInstance(new CpuPolicy(CpuLatent::plan));
  }
}

package bifocal.cpu;

import bifocal.composite.guice.AttentionBinder;
import bifocal.composite.guice.PlatformModule;
import bifocal.core.backend.BackendName;
import bifocal.core.device.Platform;
import bifocal.cpu.attention.CpuAttnBackend;
import bifocal.cpu.attention.CpuRuntime;
import bifocal.cpu.attention.FlexAttentionBackend;
import bifocal.routing.MMPrefixAttentionRouting;
import com.google.inject.AbstractModule;

/** The backends of the host processor. */
public final class CpuAttentionModule extends AbstractModule implements PlatformModule {
  private static final BackendName CPU_ATTN = BackendName.of("CPU_ATTN");
  private static final BackendName FLEX_ATTENTION = BackendName.of("FLEX_ATTENTION");
  private static final BackendName FLEX_CPU_ATTN = BackendName.of("FLEX_CPU_ATTN");

  @Override
  public Platform platform() {
    return Platform.CPU;
  }

  @Override
  protected void configure() {
    CpuRuntime runtime = CpuRuntime.ofThisJvm();
    AttentionBinder.backends(binder()).addBinding(CPU_ATTN).toInstance(new CpuAttnBackend(runtime));
    AttentionBinder.backends(binder())
        .addBinding(FLEX_ATTENTION)
        .toInstance(new FlexAttentionBackend(runtime));
    AttentionBinder.composites(binder())
        .bind(FLEX_CPU_ATTN)
        .of(FLEX_ATTENTION, CPU_ATTN)
        .routedBy(MMPrefixAttentionRouting.class);
  }
}

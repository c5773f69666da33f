package bifocal.core.backend;

import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.cache.KvCacheSpec;
import bifocal.core.cache.KvLayouts;
import bifocal.core.device.Platform;
import bifocal.core.layer.AttentionLayerSpec;
import bifocal.core.layer.AttentionType;
import bifocal.core.layer.LayerGroup;
import bifocal.core.layer.LayerParameters;
import bifocal.core.tensor.DType;
import io.vavr.control.Option;
import java.util.function.Function;

/** A backend that states what a test says and runs nothing. */
public class StubBackend implements AttentionBackend<AttentionMetadata> {
  /** A plain decoder backend on every platform. */
  public static final FeatureSet PLAIN =
      FeatureSet.NONE
          .withDtypes(DType.FP16, DType.BF16)
          .withKvCacheDtypes(KvCacheDtype.AUTO, KvCacheDtype.BFLOAT16)
          .withBlockSizes(BlockSizes.multiplesOf(16))
          .withHeadSizes(HeadSizes.exactly(64, 128))
          .withTypes(AttentionType.DECODER)
          .withKvLayouts(KvLayouts.NHD)
          .withDevices(DeviceSupport.on(Platform.CPU, Platform.CUDA, Platform.ROCM, Platform.XPU));

  private final String name;
  private final Capabilities capabilities;
  private Function<AttentionRequest, Option<InvalidReason>> combination = r -> Option.none();
  private Option<InvalidReason> missing = Option.none();
  private Execution execution = Execution.NATIVE;

  public StubBackend(String name, FeatureSet reference) {
    this(name, Capabilities.of(reference));
  }

  public StubBackend(String name, Capabilities capabilities) {
    this.name = name;
    this.capabilities = capabilities;
  }

  StubBackend refusing(Function<AttentionRequest, Option<InvalidReason>> rule) {
    combination = rule;
    return this;
  }

  StubBackend missing(String text) {
    missing = Option.some(new InvalidReason(ReasonCode.NOT_ON_THIS_HOST, text, "", ""));
    return this;
  }

  StubBackend executedBy(Execution.Status status) {
    execution = new Execution(status, "");
    return this;
  }

  @Override
  public BackendName name() {
    return new BackendName(name);
  }

  @Override
  public Capabilities capabilities() {
    return capabilities;
  }

  @Override
  public Option<InvalidReason> checkCombination(AttentionRequest request) {
    return combination.apply(request);
  }

  @Override
  public Option<InvalidReason> missingOnThisHost(AttentionRequest request) {
    return missing;
  }

  @Override
  public Execution execution() {
    return execution;
  }

  @Override
  public AttentionMetadataBuilder<AttentionMetadata> createBuilder(
      LayerGroup group, KvCacheSpec cache) {
    throw new AssertionError("a stub builds nothing");
  }

  @Override
  public AttentionImpl<AttentionMetadata> createImpl(
      AttentionLayerSpec layer, LayerParameters parameters, KvCacheSpec cache) {
    throw new AssertionError("a stub runs nothing");
  }
}

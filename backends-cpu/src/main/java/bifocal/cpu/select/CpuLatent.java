package bifocal.cpu.select;

import bifocal.core.backend.AttentionBackend;
import bifocal.core.backend.AttentionRequest;
import bifocal.core.backend.BackendName;
import bifocal.core.backend.DecodeThreshold;
import bifocal.core.backend.DeviceSupport;
import bifocal.core.backend.FeatureSet;
import bifocal.core.backend.HeadSizes;
import bifocal.core.backend.InvalidReason;
import bifocal.core.backend.ReasonCode;
import bifocal.core.backend.ResolvedVariant;
import bifocal.core.cache.BlockSizes;
import bifocal.core.cache.KvCacheDtype;
import bifocal.core.device.DeviceProfile;
import bifocal.core.device.DeviceProfile.CpuIsa;
import bifocal.core.device.Platform;
import bifocal.core.graph.GraphSupport;
import bifocal.core.select.BackendDeclaration;
import bifocal.core.select.DeclaredBackend;
import bifocal.core.select.FeatureColumn;
import bifocal.core.select.LatentRows;
import bifocal.core.select.PriorityList;
import bifocal.core.select.SelectionPlan;
import bifocal.core.select.SelectionRequest;
import bifocal.core.tensor.DType;
import io.vavr.collection.Seq;
import io.vavr.collection.Vector;
import io.vavr.control.Option;

/** The latent backends of the host processor, and how they are chosen. */
public final class CpuLatent {
  private static final BackendName AMX = BackendName.of("AMX_MLA");
  private static final BackendName PLAIN = BackendName.of("CPU_MLA");
  private static final int PLAIN_BLOCK = CpuLatentEngine.CPU_MLA.blockSize();
  private static final Seq<BackendName> WITH_TILES = Vector.of(AMX, PLAIN);
  private static final Seq<BackendName> WITHOUT_TILES = Vector.of(PLAIN);

  private static final FeatureSet EVERY_ROW =
      LatentRows.DENSE
          .withKvCacheDtypes(KvCacheDtype.AUTO)
          .withHeadSizes(HeadSizes.exactly(576))
          .withDevices(DeviceSupport.on(Platform.CPU));

  private static final FeatureSet AMX_ROW =
      EVERY_ROW.withDtypes(DType.BF16).withBlockSizes(BlockSizes.multiplesOf(32));

  private static final FeatureSet PLAIN_ROW =
      EVERY_ROW
          .withDtypes(DType.FP16, DType.BF16, DType.FP32)
          .withBlockSizes(BlockSizes.exactly(PLAIN_BLOCK));

  private static final BackendDeclaration AMX_MLA =
      LatentRows.remarking(
              LatentRows.declare(
                  LatentRows.row(AMX, AMX_ROW).spelled(FeatureColumn.COMPUTE_CAPABILITY, "Any"),
                  GraphSupport.NEVER,
                  DecodeThreshold.single()),
              request -> Vector.of("its prefills run over latents"))
          .but(CpuLatent::needsTiles)
          .but((request, variant) -> AmxLatent.cacheType(request.layer().kvCacheDtype()));

  private static final BackendDeclaration CPU_MLA =
      LatentRows.remarking(
              LatentRows.declare(
                  LatentRows.row(PLAIN, PLAIN_ROW), GraphSupport.NEVER, DecodeThreshold.single()),
              request ->
                  CpuLatentEngine.CPU_MLA
                      .remarks()
                      .append("its prefills run over keys and values of full size"))
          .but(CpuLatent::blocksAreSixteen);

  private CpuLatent() {}

  /** Every backend. */
  public static Seq<AttentionBackend<?>> all() {
    return Vector.of(
        DeclaredBackend.needing("AMX_KERNELS: latent decode on matrix tiles", AMX_MLA),
        DeclaredBackend.needing("CPU_KERNELS: latent decode on the host processor", CPU_MLA));
  }

  /**
   * Candidates of decode. Without matrix tiles there is one, and the cache has its block size,
   * whatever the user pins.
   */
  public static SelectionPlan plan(SelectionRequest request, AttentionRequest asked) {
    if (hasTiles(asked.device())) {
      return SelectionPlan.byPriority(asked, WITH_TILES);
    }
    Option<Integer> other = asked.blockSize().filter(size -> size != PLAIN_BLOCK);
    return other
        .map(
            size ->
                SelectionPlan.byPriority(asked.withBlockSize(PLAIN_BLOCK), WITHOUT_TILES)
                    .noting(
                        "CPU MLA backend requires block_size=16, overriding user-specified"
                            + " block_size="
                            + size
                            + "."))
        .getOrElse(() -> SelectionPlan.byPriority(asked, WITHOUT_TILES));
  }

  /** The lists as documentation prints them. */
  static Seq<PriorityList> printed() {
    return Vector.of(
        new PriorityList("mla", "CPU", "AMX", WITH_TILES),
        new PriorityList("mla", "CPU", "without AMX", WITHOUT_TILES));
  }

  private static boolean hasTiles(DeviceProfile device) {
    return device instanceof DeviceProfile.Cpu cpu && cpu.isa() == CpuIsa.AMX;
  }

  private static Option<InvalidReason> needsTiles(
      AttentionRequest request, ResolvedVariant variant) {
    return Option.when(
        !hasTiles(request.device()),
        () ->
            new InvalidReason(
                ReasonCode.DEVICE,
                "compute capability not supported",
                request.device().label(),
                "cpu amx"));
  }

  /** A page of several blocks is no page of this backend. */
  private static Option<InvalidReason> blocksAreSixteen(
      AttentionRequest request, ResolvedVariant variant) {
    return request
        .blockSize()
        .filter(size -> size != PLAIN_BLOCK)
        .map(
            size ->
                new InvalidReason(
                    ReasonCode.BLOCK_SIZE,
                    "block_size not supported",
                    String.valueOf(size),
                    String.valueOf(PLAIN_BLOCK)));
  }
}
